import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { groupKey } from '../group-key.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName } from '../strings.ts';

const ActivationSpec = withTransitions(
  z.object({
    integration: objectName().describe('The metadata.name of an Integration within the same namespace. Immutable.'),
    groupKey: groupKey().describe(
      'The group key to open for this integration, on all streams. Must be 1 to 256 bytes of UTF-8, without control characters or leading and trailing spaces. Group keys are compared byte by byte. Immutable.',
    ),
    revoked: z
      .boolean()
      .describe(
        'Set to true to close the group key for this integration regardless of any other Activations that open it. Defaults to false.',
      )
      .optional(),
  }),
  immutable('integration'),
  immutable('groupKey'),
).describe('Specifies the group key to open and the integration to open it for.');
type ActivationSpec = z.infer<typeof ActivationSpec>;

export const ActivationStatus = z
  .object({ ...statusFields })
  .describe('The most recently observed status of the activation.');
export type ActivationStatus = z.infer<typeof ActivationStatus>;

export const Activation = defineKind({
  kind: 'Activation',
  plural: 'activations',
  shortNames: ['actv'],
  scope: 'Namespaced',
  description:
    'Activation opens a group key for an integration, on all streams of the producer. A group key is open if it has an Activation and none of its Activations is revoked. To close it, set revoked to true. When Effective is False, events with this group key are no longer routed.',
  spec: ActivationSpec,
  status: ActivationStatus,
  columns: [
    { name: 'Integration', type: 'string', jsonPath: '.spec.integration', description: "The integration's name." },
    { name: 'Group Key', type: 'string', jsonPath: '.spec.groupKey', description: 'The group key.' },
    conditionColumn('Effective', 'Effective', 'status', 'Indicates whether events with this group key can flow.'),
  ],
  selectableFields: ['.spec.integration', '.spec.groupKey'],
});
export type Activation = z.infer<typeof Activation.schema>;

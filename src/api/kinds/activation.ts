import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { groupKey } from '../group-key.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName } from '../strings.ts';

const ActivationSpec = withTransitions(
  z.object({
    integration: objectName().describe(
      'The metadata.name of an Integration in this namespace. This field is immutable.',
    ),
    groupKey: groupKey().describe(
      'The group key to open for the integration, on all streams. It can have 1 to 256 bytes of UTF-8, without control characters and without leading or trailing spaces. Group keys are compared byte by byte. This field is immutable.',
    ),
    revoked: z
      .boolean()
      .describe(
        'If true, the group key is closed for the integration, even if other Activations open it. Defaults to false.',
      )
      .optional(),
  }),
  immutable('integration'),
  immutable('groupKey'),
).describe('The group key to open and the integration that receives its events.');
type ActivationSpec = z.infer<typeof ActivationSpec>;

export const ActivationStatus = z.object({ ...statusFields }).describe('The observed state of the activation.');
export type ActivationStatus = z.infer<typeof ActivationStatus>;

export const Activation = defineKind({
  kind: 'Activation',
  plural: 'activations',
  shortNames: ['actv'],
  scope: 'Namespaced',
  description:
    'An Activation opens one group key of the producer for one integration, on all streams. The group key is open if at least one Activation refers to it and none of them is revoked. To close the group key, set revoked to true and wait for Effective=False. After that, no events of the group key are routed.',
  spec: ActivationSpec,
  status: ActivationStatus,
  columns: [
    { name: 'Integration', type: 'string', jsonPath: '.spec.integration', description: 'The integration.' },
    { name: 'Group Key', type: 'string', jsonPath: '.spec.groupKey', description: 'The group key.' },
    conditionColumn('Effective', 'Effective', 'status', 'Whether events of the group key can flow.'),
  ],
  selectableFields: ['.spec.integration', '.spec.groupKey'],
});
export type Activation = z.infer<typeof Activation.schema>;

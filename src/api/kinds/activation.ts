import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { groupKey } from '../group-key.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName } from '../strings.ts';

const ActivationSpec = withTransitions(
  z.object({
    integration: objectName().describe('metadata.name of an Integration of this namespace. Immutable.'),
    groupKey: groupKey().describe(
      'Group key whose events may go to the integration, on all streams: 1 to 256 bytes of UTF-8, compared byte by byte, without control characters and without spaces at its ends. Immutable.',
    ),
    revoked: z
      .boolean()
      .describe(
        'True: closes the group key for the integration, even if other Activations for the same pair open it. Absent: false.',
      )
      .optional(),
  }),
  immutable('integration'),
  immutable('groupKey'),
).describe('The group key to open, and the integration to open it for.');
type ActivationSpec = z.infer<typeof ActivationSpec>;

export const ActivationStatus = z.object({ ...statusFields }).describe('Observed state of the activation.');
export type ActivationStatus = z.infer<typeof ActivationStatus>;

export const Activation = defineKind({
  kind: 'Activation',
  plural: 'activations',
  shortNames: ['actv'],
  scope: 'Namespaced',
  description:
    'Opens one group key of the producer for one integration, on all streams. The pair is open while at least one Activation names it and none of these is revoked. To close it, set revoked and wait for Effective=False: from then on nothing is routed.',
  spec: ActivationSpec,
  status: ActivationStatus,
  columns: [
    { name: 'Integration', type: 'string', jsonPath: '.spec.integration', description: 'The integration.' },
    { name: 'Group Key', type: 'string', jsonPath: '.spec.groupKey', description: 'The group key.' },
    conditionColumn('Effective', 'Effective', 'status', 'Whether events of the group key may flow.'),
  ],
  selectableFields: ['.spec.integration', '.spec.groupKey'],
});
export type Activation = z.infer<typeof Activation.schema>;

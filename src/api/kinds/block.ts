import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName } from '../strings.ts';

export const BlockSpec = withTransitions(
  z.object({
    integration: objectName().describe('The metadata.name of an Integration within the same namespace. Immutable.'),
    target: z
      .object({
        kind: z
          .enum(['CatalogStream', 'Package'])
          .describe(
            'The kind of resource to block: either CatalogStream for a single stream, or Package for all streams within a package.',
          ),
        name: objectName().describe('The metadata.name of the stream or package, which must be in the same namespace.'),
      })
      .describe('The stream or package to block. Immutable.'),
    onUnblock: z
      .enum(['Continue', 'SkipToNow'])
      .default('Continue')
      .describe(
        'Specifies what happens to events accepted during the block when you remove the block. `Continue` routes them in order, unless their retention period has ended. `SkipToNow` skips them, unless another Block of the subscription has `Continue`. Events in the inbox are delivered either way. Defaults to Continue.',
      ),
  }),
  immutable('integration'),
  immutable('target'),
).describe('Specifies the stream or package to block and the integration to block it for.');
export type BlockSpec = z.infer<typeof BlockSpec>;

export const BlockStatus = z
  .object({
    ...statusFields,
    pausedSubscriptions: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .meta({ format: 'int32' })
      .describe("The number of the integration's subscriptions currently affected by this Block.")
      .optional(),
  })
  .describe('The most recently observed status of the block.');
export type BlockStatus = z.infer<typeof BlockStatus>;

export const Block = defineKind({
  kind: 'Block',
  plural: 'blocks',
  shortNames: ['blk'],
  scope: 'Namespaced',
  description:
    'Block pauses a stream, or all streams of a package, for an integration. While it exists, the subscriptions to these streams are paused, and the REST API rejects new ones. They resume when no Block applies to them any more.',
  spec: BlockSpec,
  status: BlockStatus,
  columns: [
    { name: 'Integration', type: 'string', jsonPath: '.spec.integration', description: "The integration's name." },
    { name: 'Kind', type: 'string', jsonPath: '.spec.target.kind', description: 'The kind of resource being blocked.' },
    {
      name: 'Target',
      type: 'string',
      jsonPath: '.spec.target.name',
      description: 'The name of the resource being blocked.',
    },
    conditionColumn('Enforced', 'Enforced', 'status', 'Indicates whether the block is currently enforced.'),
  ],
  selectableFields: ['.spec.integration', '.spec.target.kind', '.spec.target.name'],
});
export type Block = z.infer<typeof Block.schema>;

import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName } from '../strings.ts';

export const BlockSpec = withTransitions(
  z.object({
    integration: objectName().describe(
      'The metadata.name of an Integration in this namespace. This field is immutable.',
    ),
    target: z
      .object({
        kind: z
          .enum(['CatalogStream', 'Package'])
          .describe(
            'The kind of the target. Use CatalogStream to block one stream, or Package to block all streams of a package.',
          ),
        name: objectName().describe('The metadata.name of the stream or package in this namespace.'),
      })
      .describe('The stream or package to block. This field is immutable.'),
    onUnblock: z
      .enum(['Continue', 'SkipToNow'])
      .default('Continue')
      .describe(
        'Specifies how events that were accepted during the block are handled when it ends. If set to Continue, the events are routed in order, unless their retention period has ended. If set to SkipToNow, the events are skipped, unless another Block of the subscription has a different value. Events that are already in the inbox are delivered. Defaults to Continue.',
      ),
  }),
  immutable('integration'),
  immutable('target'),
).describe('The stream or package to block, and the integration that it is blocked for.');
export type BlockSpec = z.infer<typeof BlockSpec>;

export const BlockStatus = z
  .object({
    ...statusFields,
    pausedSubscriptions: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .meta({ format: 'int32' })
      .describe('The number of subscriptions of the integration that this Block applies to.')
      .optional(),
  })
  .describe('The observed state of the block.');
export type BlockStatus = z.infer<typeof BlockStatus>;

export const Block = defineKind({
  kind: 'Block',
  plural: 'blocks',
  shortNames: ['blk'],
  scope: 'Namespaced',
  description:
    'A Block pauses one stream, or all streams of a package, for one integration. New subscriptions are rejected and active subscriptions are paused. A subscription resumes when no Block applies to it.',
  spec: BlockSpec,
  status: BlockStatus,
  columns: [
    { name: 'Integration', type: 'string', jsonPath: '.spec.integration', description: 'The integration.' },
    { name: 'Kind', type: 'string', jsonPath: '.spec.target.kind', description: 'The kind of the target.' },
    { name: 'Target', type: 'string', jsonPath: '.spec.target.name', description: 'The name of the target.' },
    conditionColumn('Enforced', 'Enforced', 'status', 'Whether the block is enforced.'),
  ],
});
export type Block = z.infer<typeof Block.schema>;

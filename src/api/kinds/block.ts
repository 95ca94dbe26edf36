import { z } from 'zod';
import { statusFields } from '../conditions.ts';
import { conditionColumn, defineKind } from '../kind.ts';
import { immutable, withTransitions } from '../rules.ts';
import { objectName } from '../strings.ts';

export const BlockSpec = withTransitions(
  z.object({
    integration: objectName().describe('metadata.name of an Integration of this namespace. Immutable.'),
    target: z
      .object({
        kind: z
          .enum(['CatalogStream', 'Package'])
          .describe('CatalogStream: blocks one stream. Package: blocks all streams of the package.'),
        name: objectName().describe('metadata.name of the stream or package in this namespace.'),
      })
      .describe('The stream or package to keep from the integration. Immutable.'),
    onUnblock: z
      .enum(['Continue', 'SkipToNow'])
      .default('Continue')
      .describe(
        'What happens to the events accepted during the block, once it ends. Continue (default): they are routed in order, as far as the retention reaches. SkipToNow: they are skipped, if all Blocks that cover the subscription until then have SkipToNow; events already in the inbox are delivered.',
      ),
  }),
  immutable('integration'),
  immutable('target'),
).describe('The stream or package to block, and the integration to block it for.');
export type BlockSpec = z.infer<typeof BlockSpec>;

export const BlockStatus = z
  .object({
    ...statusFields,
    pausedSubscriptions: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .meta({ format: 'int32' })
      .describe("Number of the integration's subscriptions that this Block covers.")
      .optional(),
  })
  .describe('Observed state of the block.');
export type BlockStatus = z.infer<typeof BlockStatus>;

export const Block = defineKind({
  kind: 'Block',
  plural: 'blocks',
  shortNames: ['blk'],
  scope: 'Namespaced',
  description:
    'Keeps one stream, or all streams of a package, from one integration. New subscriptions are refused, and live ones pause. A subscription resumes when no Block covers it any more.',
  spec: BlockSpec,
  status: BlockStatus,
  columns: [
    { name: 'Integration', type: 'string', jsonPath: '.spec.integration', description: 'The integration.' },
    { name: 'Kind', type: 'string', jsonPath: '.spec.target.kind', description: 'Kind of the target.' },
    { name: 'Target', type: 'string', jsonPath: '.spec.target.name', description: 'Name of the target.' },
    conditionColumn('Enforced', 'Enforced', 'status', 'Whether the data plane enforces it.'),
  ],
});
export type Block = z.infer<typeof Block.schema>;

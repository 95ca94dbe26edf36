import { z } from 'zod';
import type { BlockSpec } from '../../../api/kinds/block.ts';
import { blockId, publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';

export const BlockEntry = z
  .object({
    publicId: publicIdField('Block'),
    target: z.enum(['stream', 'package']).meta({ description: 'The kind of resource being blocked.' }),
    catalogEntryPublicId: publicIdField('CatalogStream')
      .nullable()
      .meta({ description: 'The stream that is blocked, or null if this is a block for a package.' }),
    packagePublicId: publicIdField('Package')
      .nullable()
      .meta({ description: 'The package that is blocked, or null if this is a block for a stream.' }),
    key: z.string().meta({ description: 'The key of the stream or package.' }),
    enforced: z.boolean().meta({ description: 'Indicates whether the block is currently in force.' }),
    pausedSubscriptions: z
      .int()
      .meta({ description: 'The number of subscriptions of the integration that are affected by the block.' }),
    objects: z.array(z.string()).meta({
      description:
        'The names of all Block objects for this target. The block is removed when all of these objects have been deleted.',
    }),
  })
  .meta({ id: 'Block' });

type BlockObject = Pick<Cached<'Block'>, 'metadata' | 'spec' | 'status'>;
type BlockGroup = readonly [BlockObject, ...BlockObject[]];

/** Returns the public id of the target of a Block (`cat_…` or `pkg_…`). */
function targetId(namespace: string, { kind, name }: BlockSpec['target']): string {
  return publicId(kind, namespace, name);
}

/** Returns the public id for the integration and the target of a Block. Doesn't depend on the object name. */
function blockIdOf({ metadata: { namespace = '' }, spec: { integration, target } }: BlockObject): string {
  return blockId(namespace, integration, target.kind, target.name);
}

function isEnforced({ metadata, status }: BlockObject): boolean {
  const enforced = status?.conditions?.find(({ type }) => type === 'Enforced');
  return enforced?.status === 'True' && enforced.observedGeneration === metadata.generation;
}

/** Returns the entry for an integration and a target. @param blocks all objects of the pair */
export function blockEntry(blocks: BlockGroup): z.output<typeof BlockEntry> {
  const [block] = blocks;
  const { target } = block.spec;
  const id = targetId(block.metadata.namespace ?? '', target);
  const ofStream = target.kind === 'CatalogStream';
  return {
    publicId: blockIdOf(block),
    target: ofStream ? 'stream' : 'package',
    catalogEntryPublicId: ofStream ? id : null,
    packagePublicId: ofStream ? null : id,
    key: target.name,
    enforced: blocks.some(isEnforced),
    pausedSubscriptions: Math.max(...blocks.map(({ status }) => status?.pausedSubscriptions ?? 0)),
    objects: blocks.map(({ metadata }) => metadata.name).toSorted(),
  };
}

/**
 * Returns the Blocks of each target, along with their public id. Blocks being deleted are no longer in effect, so we
 * ignore them.
 */
export function groupBlocks(blocks: readonly BlockObject[]): (readonly [publicId: string, group: BlockGroup])[] {
  const standing = blocks.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  return [...Map.groupBy(standing, blockIdOf)] as unknown as (readonly [string, BlockGroup])[];
}

/**
 * Finds the integration and target names in the Blocks for an integration by the public id of the target. Used when the
 * objects have already been deleted.
 */
export function namesInBlocks(
  blocks: readonly BlockObject[],
  { namespace, target: id }: { readonly namespace: string; readonly target: string },
): Pick<BlockSpec, 'integration' | 'target'> | undefined {
  const found = blocks.find(
    ({ metadata, spec }) => metadata.namespace === namespace && targetId(namespace, spec.target) === id,
  );
  return found && { integration: found.spec.integration, target: found.spec.target };
}

import { z } from 'zod';
import type { BlockSpec } from '../../../api/kinds/block.ts';
import { blockId, publicId } from '../../../core/ids/ids.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Cached } from '../../objects/cached.ts';

export const BlockEntry = z
  .object({
    publicId: publicIdField('Block'),
    target: z.enum(['stream', 'package']).meta({ description: 'What is blocked.' }),
    catalogEntryPublicId: publicIdField('CatalogStream').nullable().meta({ description: 'Of a blocked stream.' }),
    packagePublicId: publicIdField('Package').nullable().meta({ description: 'Of a blocked package.' }),
    key: z.string().meta({ description: 'Key of the stream or package.' }),
    enforced: z.boolean().meta({ description: 'Whether the data plane holds to it.' }),
    pausedSubscriptions: z.int().meta({ description: "Number of the integration's subscriptions that it covers." }),
    objects: z
      .array(z.string())
      .meta({ description: 'Block objects that say so. All have to go for it to be lifted.' }),
  })
  .meta({ id: 'Block' });

type BlockObject = Pick<Cached<'Block'>, 'metadata' | 'spec' | 'status'>;

/** Public id of what a Block keeps back: `cat_…` or `pkg_…`. */
export function targetId(namespace: string, { kind, name }: BlockSpec['target']): string {
  return publicId(kind, namespace, name);
}

/** Public id of the pair that a Block is about, whatever it is called. */
export function blockIdOf({ metadata: { namespace = '' }, spec: { integration, target } }: BlockObject): string {
  return blockId(namespace, integration, target.kind, target.name);
}

function isEnforced({ metadata, status }: BlockObject): boolean {
  const enforced = status?.conditions?.find(({ type }) => type === 'Enforced');
  return enforced?.status === 'True' && enforced.observedGeneration === metadata.generation;
}

/** One integration and one target, as all of its Block objects say it. @param blocks at least one */
export function blockEntry(blocks: readonly [BlockObject, ...BlockObject[]]): z.output<typeof BlockEntry> {
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

/** One entry for each target; a Block on its way out covers nothing any more. */
export function blockEntries(blocks: readonly BlockObject[]): z.output<typeof BlockEntry>[] {
  const standing = blocks.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const groups = Map.groupBy(standing, blockIdOf);
  return [...groups.values()].map(group => blockEntry(group as [BlockObject, ...BlockObject[]]));
}

/** Names of an integration and a target by their public ids, as Blocks have them when the objects themselves are gone. */
export function namesInBlocks(
  blocks: readonly BlockObject[],
  ids: { readonly integration: string; readonly target: string },
): Pick<BlockSpec, 'integration' | 'target'> | undefined {
  const found = blocks.find(({ metadata: { namespace = '' }, spec: { integration, target } }) => {
    return (
      targetId(namespace, target) === ids.target && publicId('Integration', namespace, integration) === ids.integration
    );
  });
  return found && { integration: found.spec.integration, target: found.spec.target };
}

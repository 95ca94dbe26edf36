import { expect, test } from 'vitest';
import { blockId, publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { BlockEntry, blockEntry, groupBlocks, namesInBlocks } from './block-views.ts';

const ORDERS = { kind: 'CatalogStream', name: 'orders' } as const;
const BASICS = { kind: 'Package', name: 'basics' } as const;
const ids = { namespace: 'shop', target: publicId('CatalogStream', 'shop', 'orders') };
const blockEntries = (blocks: Parameters<typeof groupBlocks>[0]) =>
  groupBlocks(blocks).map(([, group]) => blockEntry(group));

function block(name: string, target: Cached<'Block'>['spec']['target'], status: Cached<'Block'>['status'] = {}) {
  const metadata = { namespace: 'shop', name, uid: name, resourceVersion: '1', generation: 2 };
  return { metadata, spec: { integration: 'ada', target, onUnblock: 'Continue' as const }, status };
}

function enforced(observedGeneration: number) {
  const lastTransitionTime = '2026-01-01T00:00:00Z';
  const condition = { type: 'Enforced', status: 'True', reason: 'Enforced', message: 'yes' } as const;
  return { conditions: [{ ...condition, lastTransitionTime, observedGeneration }], pausedSubscriptions: 3 };
}

test('there is one entry for each target, with all of its objects', () => {
  const blocks = [block('from-git', ORDERS), block('blk-1', ORDERS, enforced(2)), block('blk-2', BASICS, enforced(1))];
  const entries = blockEntries(blocks);
  expect(groupBlocks(blocks).map(([id]) => id)).toEqual(entries.map(entry => entry.publicId));
  expect(entries).toEqual([
    {
      publicId: blockId('shop', 'ada', 'CatalogStream', 'orders'),
      target: 'stream',
      catalogEntryPublicId: ids.target,
      packagePublicId: null,
      key: 'orders',
      enforced: true,
      pausedSubscriptions: 3,
      objects: ['blk-1', 'from-git'],
    },
    {
      publicId: blockId('shop', 'ada', 'Package', 'basics'),
      target: 'package',
      catalogEntryPublicId: null,
      packagePublicId: publicId('Package', 'shop', 'basics'),
      key: 'basics',
      enforced: false,
      pausedSubscriptions: 3,
      objects: ['blk-2'],
    },
  ]);
  for (const entry of entries) expect(BlockEntry.parse(entry)).toEqual(entry);
});

test('a Block that is being deleted is not listed', () => {
  const leaving = block('blk-1', ORDERS);
  const metadata = { ...leaving.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' };
  expect(blockEntries([{ ...leaving, metadata }])).toEqual([]);
});

test('names are found in the Blocks of a workspace by the public id of the target', () => {
  const blocks = [block('one', BASICS), block('two', ORDERS)];
  expect(namesInBlocks(blocks, ids)).toEqual({ integration: 'ada', target: ORDERS });
  expect(namesInBlocks(blocks, { ...ids, namespace: 'other' })).toBeUndefined();
  expect(namesInBlocks(blocks, { ...ids, target: publicId('Package', 'shop', 'orders') })).toBeUndefined();
});

import { describe, expect, test } from 'vitest';
import { createTestRoom, objectOf } from '../testing/room.ts';
import type { Cached } from '../world.ts';
import { finalizeWorkspace, reconcileWorkspace } from './reconcile.ts';

const workspace = objectOf<'Workspace'>(
  'acme',
  { account: 'acme', owners: [], ingressKeys: [] },
  { namespace: undefined, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
);

function roomWithoutRedis(deletingForMs: number) {
  const { room, letGo } = createTestRoom({ Workspace: [workspace] }, { deletingForMs });
  const inForce = () => Promise.reject(new Error('Redis is away'));
  return { room: { ...room, tenants: { ...room.tenants, inForce } }, letGo };
}

describe('a producer', () => {
  const roomOf = (streams: readonly Cached<'CatalogStream'>[]) => {
    const { room } = createTestRoom({ Workspace: [workspace], CatalogStream: streams });
    return { ...room, shortages: { isShort: () => undefined, note: () => {} } };
  };
  const judge = async (streams: readonly Cached<'CatalogStream'>[], status?: object) =>
    (await reconcileWorkspace(roomOf(streams))({ ...workspace, ...(status === undefined ? {} : { status }) })).status
      ?.producer;

  test('is one from its first stream on, and stays one after its last', async () => {
    expect(await judge([])).toBe(false);
    expect(await judge([objectOf('orders', { deletionPolicy: 'Retain', retention: '168h' } as never)])).toBe(true);
    expect(await judge([], { producer: true })).toBe(true);
    expect(await judge([], { producer: false })).toBe(false);
  });
});

describe('the deletion of a workspace', () => {
  test('waits for Redis for a minute of this process, whatever the clock of the API server says', async () => {
    const early = roomWithoutRedis(59_999);
    await expect(finalizeWorkspace(early.room)(workspace)).rejects.toThrow('Redis is away');
    const late = roomWithoutRedis(60_000);
    expect(await finalizeWorkspace(late.room)(workspace)).toBe('done');
    expect(late.letGo).toEqual(['acme undefined']);
  });
});

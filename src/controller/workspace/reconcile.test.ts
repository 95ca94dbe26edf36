import { describe, expect, test } from 'vitest';
import { createTestRoom, objectOf } from '../testing/room.ts';
import { finalizeWorkspace } from './reconcile.ts';

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

describe('the deletion of a workspace', () => {
  test('waits for Redis for a minute of this process, whatever the clock of the API server says', async () => {
    const early = roomWithoutRedis(59_999);
    await expect(finalizeWorkspace(early.room)(workspace)).rejects.toThrow('Redis is away');
    const late = roomWithoutRedis(60_000);
    expect(await finalizeWorkspace(late.room)(workspace)).toBe('done');
    expect(late.letGo).toEqual(['acme undefined']);
  });
});

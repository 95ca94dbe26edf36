import { describe, expect, test } from 'vitest';
import { createTestRoom, objectOf } from '../../../../test/support/controller/room.ts';
import type { Condition } from '../../../api/conditions.ts';
import type { Cached } from '../../caches/caches.ts';
import { OutageError } from '../../engine/outcome.ts';
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
    return room;
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

describe('an outage of Redis', () => {
  const away = new OutageError('RedisUnavailable', 'Redis does not answer');
  const said = (status: Condition['status'], reason: string, type = 'Ready'): Condition => ({
    type,
    status,
    reason,
    message: 'm',
    observedGeneration: 1,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  });
  const judge = async (awayForMs: number, conditions: Condition[], inForce = () => Promise.reject(away)) => {
    const { room } = createTestRoom({ Workspace: [workspace] }, { awayForMs });
    const outcome = await reconcileWorkspace({ ...room, tenants: { ...room.tenants, inForce } })({
      ...workspace,
      status: { conditions },
    });
    return outcome.conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
  };

  test('is no word for a minute, then it is reported beside what is applied', async () => {
    const ready = said('True', 'NamespaceReady');
    await expect(judge(59_999, [ready])).rejects.toBe(away);
    const reported = ['Ready=True/NamespaceReady', 'DataPlaneReachable=False/RedisUnavailable'];
    expect(await judge(60_000, [ready])).toEqual(reported);
    expect(await judge(60_000, [ready, said('True', 'RedisAnswers', 'DataPlaneReachable')])).toEqual(reported);
  });

  test('leaves a generation that is not applied unready', async () => {
    expect(await judge(60_000, [{ ...said('True', 'NamespaceReady'), observedGeneration: 0 }])).toEqual([
      'Ready=False/RedisUnavailable',
      'Reconciling=True/Retrying',
      'DataPlaneReachable=False/RedisUnavailable',
    ]);
  });

  test('is over when Redis answers', async () => {
    const account = objectOf<'Account'>(
      'acme',
      { plan: 'Free', includedTokens: 1, owners: [] },
      { namespace: undefined },
    );
    const { room } = createTestRoom({ Workspace: [workspace], Account: [account] });
    const conditions = [said('False', 'RedisUnavailable', 'DataPlaneReachable')];
    const outcome = await reconcileWorkspace(room)({ ...workspace, status: { conditions } });
    expect(outcome.conditions.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'Ready=True',
      'DataPlaneReachable=True',
    ]);
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

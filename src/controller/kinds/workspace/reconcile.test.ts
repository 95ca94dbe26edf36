import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Condition } from '../../../api/conditions.ts';
import type { Store } from '../../../kube/store.ts';
import type { Cached } from '../../caches/caches.ts';
import { OutageError } from '../../engine/outcome.ts';
import { finalizeWorkspace, reconcileWorkspace } from './reconcile.ts';

const workspace = objectOf<'Workspace'>(
  'acme',
  { account: 'acme', owners: [], ingressKeys: [] },
  { namespace: undefined, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } },
);

function roomWithoutRedis(deletingForMs: number) {
  const { context, forceRemoved } = createTestContext({ Workspace: [workspace] }, { deletingForMs });
  const inForce = () => Promise.reject(new Error('Redis is unavailable'));
  return { context: { ...context, tenants: { ...context.tenants, inForce } }, forceRemoved };
}

describe('a producer', () => {
  const roomOf = (streams: readonly Cached<'CatalogStream'>[]) => {
    const { context } = createTestContext({ Workspace: [workspace], CatalogStream: streams });
    return context;
  };
  const judge = async (streams: readonly Cached<'CatalogStream'>[], status?: object) =>
    (await reconcileWorkspace(roomOf(streams))({ ...workspace, ...(status === undefined ? {} : { status }) })).status
      ?.producer;

  test('is a producer from its first stream, and remains one after its last stream', async () => {
    expect(await judge([])).toBe(false);
    expect(await judge([objectOf('orders', { deletionPolicy: 'Retain', retention: '168h' } as never)])).toBe(true);
    expect(await judge([], { producer: true })).toBe(true);
    expect(await judge([], { producer: false })).toBe(false);
  });
});

test('an annotation that does not pause is reported', async () => {
  const { context } = createTestContext({
    Workspace: [workspace],
    Account: [objectOf<'Account'>('acme', {} as never, { namespace: undefined })],
  });
  const annotations = { 'sluice.dev/paused': 'yes' };
  const outcome = await reconcileWorkspace(context)({
    ...workspace,
    metadata: { ...workspace.metadata, annotations },
  });
  expect(outcome.conditions).toContainEqual({
    type: 'Ready',
    status: 'True',
    reason: 'PauseIgnored',
    message:
      'the namespace exists and the routes are applied; the workspace is not paused, because the value of the sluice.dev/paused annotation is not "true"',
  });
});

describe('an outage of Redis', () => {
  const away = new OutageError('RedisUnavailable', 'Redis does not answer');
  const condition = (status: Condition['status'], reason: string, type = 'Ready'): Condition => ({
    type,
    status,
    reason,
    message: 'm',
    observedGeneration: 1,
    lastTransitionTime: '2026-01-01T00:00:00Z',
  });
  const judge = async (awayForMs: number, conditions: Condition[], inForce = () => Promise.reject(away)) => {
    const { context } = createTestContext({ Workspace: [workspace] }, { awayForMs });
    const outcome = await reconcileWorkspace({ ...context, tenants: { ...context.tenants, inForce } })({
      ...workspace,
      status: { conditions },
    });
    return outcome.conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
  };

  test('is ignored for a minute, and then reported with the applied conditions', async () => {
    const ready = condition('True', 'NamespaceReady');
    await expect(judge(59_999, [ready])).rejects.toBe(away);
    const reported = ['Ready=True/NamespaceReady', 'DataPlaneReachable=False/RedisUnavailable'];
    expect(await judge(60_000, [ready])).toEqual(reported);
    expect(await judge(60_000, [ready, condition('True', 'RedisAnswers', 'DataPlaneReachable')])).toEqual(reported);
  });

  test('does not make a generation ready that is not applied', async () => {
    expect(await judge(60_000, [{ ...condition('True', 'NamespaceReady'), observedGeneration: 0 }])).toEqual([
      'Ready=False/RedisUnavailable',
      'Reconciling=True/Retrying',
      'DataPlaneReachable=False/RedisUnavailable',
    ]);
  });

  test('ends when Redis responds', async () => {
    const account = objectOf<'Account'>(
      'acme',
      { plan: 'Free', includedTokens: 1, owners: [] },
      { namespace: undefined },
    );
    const { context } = createTestContext({ Workspace: [workspace], Account: [account] });
    const conditions = [condition('False', 'RedisUnavailable', 'DataPlaneReachable')];
    const outcome = await reconcileWorkspace(context)({ ...workspace, status: { conditions } });
    expect(outcome.conditions.map(({ type, status }) => `${type}=${status}`)).toEqual([
      'Ready=True',
      'DataPlaneReachable=True',
    ]);
  });
});

describe('the deletion of a workspace', () => {
  test('waits for Redis for one minute, based on its own clock and not the clock of the API server', async () => {
    const early = roomWithoutRedis(59_999);
    await expect(finalizeWorkspace(early.context)(workspace)).rejects.toThrow('Redis is unavailable');
    const late = roomWithoutRedis(60_000);
    expect(await finalizeWorkspace(late.context)(workspace)).toBe('done');
    expect(late.forceRemoved).toEqual(['acme undefined']);
  });
});

/** A context that records what is done in the workspace's namespace. */
function recording(namespace: object | undefined, instance = '') {
  const { context } = createTestContext({ Workspace: [workspace] });
  const namespaces = context.caches.namespaces.store as unknown as Store<object>;
  if (namespace === undefined) namespaces.remove('acme');
  else namespaces.set('acme', namespace);
  const done: string[] = [];
  const note = (what: string) => async (): Promise<void> => void done.push(what);
  const created: object[] = [];
  const recorded = {
    ...context,
    instance,
    client: {
      get: async () => undefined,
      create: async (
        _resource: object,
        _name: object,
        { metadata }: { readonly metadata: { readonly labels: object } },
      ) => void created.push(metadata.labels),
    },
    quotas: { ensure: note('quota'), forget: () => void done.push('forget quota') },
    secretAccess: { ...context.secretAccess, ensure: note('access'), revoke: note('revoke access') },
    tenants: { ...context.tenants, inForce: note('routes') },
  } as unknown as Parameters<typeof reconcileWorkspace>[0];
  return { context: recorded, done, created };
}

describe('a namespace', () => {
  test.each([
    ['the workspace', { workspace: 'acme', deleting: false }, ['quota', 'access', 'routes']],
    ['nobody', { workspace: undefined, deleting: false }, ['forget quota']],
    ['a workspace, but is being deleted', { workspace: 'acme', deleting: true }, ['forget quota']],
  ])('that belongs to %s', async (_whose, namespace, expected) => {
    const { context, done } = recording(namespace);
    await reconcileWorkspace(context)(workspace);
    expect(done).toEqual(expected);
  });

  test.each([
    ['', { 'sluice.dev/workspace': 'acme' }],
    ['two', { 'sluice.dev/workspace': 'acme', 'sluice.dev/instance': 'two' }],
  ])('is created with the labels of the installation %j', async (instance, labels) => {
    const { context, created } = recording(undefined, instance);
    await expect(reconcileWorkspace(context)(workspace)).rejects.toThrow('namespace acme');
    expect(created).toEqual([labels]);
  });

  test('has no quota and no access to its Secrets after its workspace was deleted', async () => {
    const { context, done } = recording({ workspace: 'acme', deleting: false });
    await finalizeWorkspace(context)(workspace);
    expect(done).toEqual(['routes', 'forget quota', 'revoke access']);
  });
});

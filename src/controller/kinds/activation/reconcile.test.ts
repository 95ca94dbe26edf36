import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Condition } from '../../../api/conditions.ts';
import { PAUSED_ANNOTATION } from '../../../api/well-known.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { resourceOf } from '../../../kube/resource.ts';
import type { Store } from '../../../kube/store.ts';
import { createLogger } from '../../../telemetry/log.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import type { Context } from '../../context/context.ts';
import { OutageError } from '../../engine/outcome.ts';
import { type CommonStatus, createStatusWriter } from '../../engine/status-writer.ts';
import { reconcilePair } from './reconcile.ts';

const MINUTE_MS = 60_000;
const attempt = {
  failures: 0,
  signal: new AbortController().signal,
  log: createLogger({ level: 'silent' }),
};

/** The pair of an activation in a namespace without a Workspace, with the controller's clock. */
function setUp() {
  const activation = objectOf<'Activation'>('k', { integration: 'globex', groupKey: 'k' });
  const { context } = createTestContext({ Activation: [activation] });
  let wallMs = Date.parse('2026-01-01T00:00:00Z');
  let version = 1;
  const writes: string[][] = [];
  const client = {
    apply: async (_resource: object, _name: object, { status }: { status: CommonStatus }) => {
      writes.push(
        (status.conditions ?? []).map(
          (condition: Condition) => `${condition.type}=${condition.status}/${condition.reason}`,
        ),
      );
      return { ...activation, metadata: { ...activation.metadata, resourceVersion: `${++version}` }, status };
    },
  } as unknown as KubeClient;
  const status = createStatusWriter<Cached<'Activation'>['spec'], CommonStatus>({
    client,
    resource: resourceOf('Activation'),
    wallMs: () => wallMs,
  });
  const turn = reconcilePair({ ...context, wallMs: () => wallMs }, status);
  return {
    writes,
    /** The number of milliseconds until the next turn. */
    turnAfter: async (ms: number) => {
      wallMs += ms;
      return (await turn('acme/globex/k', attempt))?.requeueAfterMs;
    },
  };
}

describe('an activation outside of a workspace', () => {
  test('waits for the workspace, and fails after five minutes', async () => {
    const { writes, turnAfter } = setUp();
    expect(await turnAfter(0)).toBe(5 * MINUTE_MS);
    expect(await turnAfter(MINUTE_MS)).toBe(4 * MINUTE_MS);
    expect(writes).toEqual([['Ready=Unknown/WaitingForWorkspace', 'Reconciling=True/Progressing']]);
    expect(await turnAfter(4 * MINUTE_MS)).toBeUndefined();
    expect(await turnAfter(MINUTE_MS)).toBeUndefined();
    expect(writes.slice(1)).toEqual([['Ready=False/WaitingForWorkspace', 'Stalled=True/WaitingForWorkspace']]);
  });
});

describe('a pair whose objects change while it waits for its turn', () => {
  /** Applies the pair. `change` runs between reading the objects and writing to Redis. */
  async function apply(
    change: (stores: Caches, activation: Cached<'Activation'>) => void,
    {
      isCompiled = true,
      before = () => {},
      tenants: more = {},
    }: { readonly isCompiled?: boolean; readonly before?: typeof change; readonly tenants?: object } = {},
  ) {
    const activation = objectOf<'Activation'>('k', { integration: 'globex', groupKey: 'k' });
    const workspace = objectOf<'Workspace'>('acme', { account: 'main' }, { namespace: undefined });
    const integration = objectOf<'Integration'>('globex', { workspace: 'globex' });
    const objects = { Activation: [activation], Workspace: [workspace], Integration: [integration] };
    const { context } = createTestContext(objects, { wallMs: 7 });
    const written: (number | null)[] = [];
    const control = {
      setActivation: async (...[, , , sinceMs]: (number | null)[]) => void written.push(sinceMs as null),
    };
    const tenants = { isSynced: () => true, compiled: () => (isCompiled ? { routes: {} } : undefined), ...more };
    const changing = {
      ...context,
      control,
      tenants,
      fence: () => 1,
      explain: (error: unknown) => error,
      shared: (_namespace: string, run: () => Promise<boolean>) => (change(context.caches, activation), run()),
    } as unknown as Context;
    const writer = { latest: (object: unknown) => object, write: async () => false } as never;
    before(context.caches, activation);
    const applied = reconcilePair(changing, writer)('acme/globex/k', attempt);
    return applied.then(
      () => written,
      (error: Error) => [...written, error.message],
    );
  }
  const storeOf = (caches: Caches, kind: 'Activation' | 'Workspace' | 'Integration') =>
    caches[kind].store as Store<object>;
  const pause = (caches: Caches) => {
    const metadata = { name: 'acme', uid: 'uid-acme', annotations: { [PAUSED_ANNOTATION]: 'true' } };
    storeOf(caches, 'Workspace').set('acme', { metadata, spec: { account: 'main' } });
  };
  const revoke = (caches: Caches, activation: Cached<'Activation'>) =>
    storeOf(caches, 'Activation').set('acme/k', { ...activation, spec: { ...activation.spec, revoked: true } });

  test('is opened if nothing has changed', async () => {
    expect(await apply(() => {})).toEqual([7]);
  });

  test('is not opened if its workspace was paused, or its routes are not known anymore', async () => {
    expect(await apply(pause)).toEqual([expect.stringContaining('the pause of acme')]);
    expect(await apply(() => {}, { isCompiled: false })).toEqual([expect.stringContaining('routes of acme')]);
  });

  test('is closed if it was revoked, even during a pause, or if its integration was deleted', async () => {
    expect(await apply(revoke)).toEqual([null]);
    expect(await apply((caches, activation) => (pause(caches), revoke(caches, activation)))).toEqual([null]);
    expect(await apply(caches => storeOf(caches, 'Integration').remove('acme/globex'))).toEqual([null]);
  });

  test('is closed, but not opened, if the Secrets of its workspace cannot be read', async () => {
    const tenants = (isClosing: boolean) => ({
      isSynced: () => false,
      isClosing: () => isClosing,
      sync: () => Promise.reject(new Error('the Secrets cannot be read')),
    });
    const deleted = (caches: Caches) => storeOf(caches, 'Integration').remove('acme/globex');
    for (const before of [revoke, deleted]) {
      expect(await apply(() => {}, { before, tenants: tenants(true) })).toEqual([null]);
      // Redis may not accept writes yet.
      expect(await apply(() => {}, { before, tenants: tenants(false) })).toEqual(['the Secrets cannot be read']);
    }
    expect(await apply(() => {}, { tenants: tenants(true) })).toEqual(['the Secrets cannot be read']);
  });

  test('is closed if it was already revoked, even if its workspace is paused or does not exist', async () => {
    expect(await apply(() => {}, { before: revoke })).toEqual([null]);
    for (const change of [pause, (caches: Caches) => storeOf(caches, 'Workspace').remove('acme')]) {
      const before = (caches: Caches, activation: Cached<'Activation'>) => {
        change(caches);
        revoke(caches, activation);
      };
      expect(await apply(() => {}, { before })).toEqual([null]);
      expect(await apply(() => {}, { before: change })).toEqual([]);
    }
  });
});

test('a status is not written again if the cache receives it while the pair is applied again', async () => {
  const activation = objectOf<'Activation'>('k', { integration: 'globex', groupKey: 'k' });
  const workspace = objectOf<'Workspace'>('acme', { account: 'main' }, { namespace: undefined });
  const integration = objectOf<'Integration'>('globex', { workspace: 'globex' });
  const objects = { Activation: [activation], Workspace: [workspace], Integration: [integration] };
  const { context } = createTestContext(objects);
  const writes: Cached<'Activation'>[] = [];
  const apply = async (_resource: object, _name: object, { status }: { status: CommonStatus }) => {
    const metadata = { ...activation.metadata, resourceVersion: `${2 + writes.length}` };
    writes.push({ ...activation, metadata, status } as Cached<'Activation'>);
    return writes.at(-1);
  };
  const writer = createStatusWriter<Cached<'Activation'>['spec'], CommonStatus>({
    client: { apply } as unknown as KubeClient,
    resource: resourceOf('Activation'),
    wallMs: () => 0,
  });
  let whileApplied = () => {};
  const parts = {
    control: { setActivation: async () => whileApplied() },
    tenants: { isSynced: () => true, compiled: () => ({ routes: {} }) },
    fence: () => 1,
    shared: (_namespace: string, run: () => Promise<boolean>) => run(),
  };
  const reconcile = reconcilePair({ ...context, ...parts } as unknown as Context, writer);
  await reconcile('acme/globex/k', attempt);
  whileApplied = () => {
    const [written] = writes as [Cached<'Activation'>];
    (context.caches.Activation.store as Store<object>).set('acme/k', written);
    expect(writer.takeEcho(activation, written)).toBe(true);
  };
  await reconcile('acme/globex/k', attempt);
  expect(writes).toHaveLength(1);
});

describe('the status of a pair with several Activations', () => {
  /** Applies a pair whose first Activation was just deleted. Returns what was written for the others. */
  async function apply(setActivation: () => Promise<void>, failures: number) {
    const spec = { integration: 'globex', groupKey: 'k' };
    const activations = ['gone', 'k'].map(name => objectOf<'Activation'>(name, spec));
    const workspace = objectOf<'Workspace'>('acme', { account: 'main' }, { namespace: undefined });
    const integration = objectOf<'Integration'>('globex', { workspace: 'globex' });
    const objects = { Activation: activations, Workspace: [workspace], Integration: [integration] };
    const { context } = createTestContext(objects);
    const written: string[] = [];
    const write = async ({ metadata }: Cached<'Activation'>, _fields: object, conditions: readonly Condition[]) => {
      if (metadata.name === 'gone') throw new KubeError({ call: 'apply', status: 404, reason: 'NotFound' });
      written.push(...conditions.map(({ type, status, reason }) => `${metadata.name} ${type}=${status}/${reason}`));
    };
    const parts = {
      control: { setActivation },
      tenants: { isSynced: () => true, compiled: () => ({ routes: {} }) },
      fence: () => 1,
      explain: (error: unknown) => error,
      shared: (_namespace: string, run: () => Promise<boolean>) => run(),
    };
    const writer = { latest: (object: unknown) => object, write } as never;
    const reconcile = reconcilePair({ ...context, ...parts } as unknown as Context, writer);
    const error: unknown = await reconcile('acme/globex/k', { ...attempt, failures }).then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    return { written, error };
  }

  test('is written even if one of them no longer exists', async () => {
    const { written, error } = await apply(async () => undefined, 0);
    expect(error).toBeUndefined();
    expect(written).toContain('k Ready=True/GateOpen');
  });

  test('contains a failure that lasts', async () => {
    const away = new OutageError('RedisUnavailable', 'Redis does not respond');
    const { written, error } = await apply(() => Promise.reject(away), 10);
    expect(error).toBe(away);
    expect(written).toContain('k Ready=False/RedisUnavailable');
  });
});

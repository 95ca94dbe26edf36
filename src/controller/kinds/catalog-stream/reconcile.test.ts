import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { createManualClock } from '../../../../test/support/manual-clock.ts';
import { PAUSED_ANNOTATION } from '../../../api/well-known.ts';
import { cacheBehind } from '../../../kube/kube-error.ts';
import type { Context } from '../../context/context.ts';
import { createDeletionTimes } from '../../context/deletion-times.ts';
import { finalizeUnlessPaused, PAUSABLE } from '../../context/paused.ts';
import type { Attempt } from '../../engine/keyed-controller.ts';
import { SecretsUnreadableError } from '../../engine/outcome.ts';
import { finalizeStream, holdsEvents, reconcileStream } from './reconcile.ts';

const STREAMS = 100;
const WAITING = {
  type: 'Ready',
  status: 'Unknown',
  reason: 'WaitingForWorkspace',
  message: 'm',
  observedGeneration: 1,
};

/** Reconciles streams that waited for their workspace, and returns the number of requested compilations. */
async function reconcileAll(conditions: readonly object[], compiled: 'open' | 'closing') {
  const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
  const { context } = createTestContext({ Workspace: [workspace] });
  const syncs: string[] = [];
  let state = compiled;
  const tenants = {
    sync: async (name: string) => {
      syncs.push(name);
      state = 'open';
    },
    inForce: async (_name: string, stream: { readonly metadata: { readonly name: string } }) => ({
      routes: { queues: { [stream.metadata.name]: { state } } },
    }),
  };
  const reconcile = reconcileStream({ ...context, tenants } as unknown as Context);
  for (let i = 0; i < STREAMS; i++) {
    const spec = { retention: '1h', deletionPolicy: 'Retain' } as const;
    const { conditions: has } = await reconcile(objectOf<'CatalogStream'>(`s-${i}`, spec, { status: { conditions } }));
    expect(has.find(({ type }) => type === 'Ready')?.reason).toBe('QueueReady');
  }
  return syncs.length;
}

test.each([
  ['were compiled without the workspace', 'closing', 1],
  ['already contain the workspace', 'open', 0],
] as const)('streams that waited for a workspace only request a compilation if the routes %s', async (_what, is, n) => {
  expect(await reconcileAll([WAITING], is)).toBe(n);
});

test('other streams never request a compilation', async () => {
  expect(await reconcileAll([{ ...WAITING, status: 'True', reason: 'QueueReady' }], 'closing')).toBe(0);
});

test('a stream whose retention cannot be parsed is not ready, and the message contains the retention', async () => {
  const { context } = createTestContext({});
  const stream = objectOf<'CatalogStream'>('s', { retention: '1d', deletionPolicy: 'Retain' });
  await expect(reconcileStream(context)(stream)).rejects.toThrow('spec.retention is not a valid duration: 1d.');
});

describe('the deletion of a stream', () => {
  /** Finalizes a stream with an undelivered event. Returns the result, and whether its queue was removed. */
  async function finalize(
    deletionPolicy: 'Retain' | 'Delete',
    {
      drops = true,
      fault,
      ...options
    }: { drops?: boolean; fault?: Error; namespaceDeleting?: boolean; deletingForMs?: number } = {},
  ) {
    const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
    const { context, forceRemoved } = createTestContext({ Workspace: [workspace] }, options);
    const dropped: string[] = [];
    const dropQueue = async (...[, , name]: string[]) => {
      if (!drops) throw new Error('Redis is unavailable');
      dropped.push(name as string);
    };
    const { inForce } = context.tenants;
    const parts = {
      control: { readDrain: async () => ({ unrouted: 0, open: 1 }), dropQueue },
      explain: (error: unknown) => error,
      tenants: {
        ...context.tenants,
        inForce: (...args: Parameters<typeof inForce>) =>
          fault === undefined ? inForce(...args) : Promise.reject(fault),
        remove: (...[, , drop]: [string, string, (fence: number) => unknown]) => drop(1),
      },
    };
    const finalization = finalizeStream({ ...context, ...parts } as unknown as Context)(
      objectOf<'CatalogStream'>('orders', { retention: '1h', deletionPolicy }),
    );
    const result = await finalization.then(
      outcome => (outcome === 'done' ? outcome : outcome.conditions[0]?.reason),
      (error: Error) => error.message,
    );
    return { result, dropped, forced: forceRemoved.length };
  }

  test('waits for its events if its policy is Retain, unless its namespace is being deleted', async () => {
    expect(await finalize('Retain')).toEqual({ result: 'Draining', dropped: [], forced: 0 });
    expect(await finalize('Retain', { namespaceDeleting: true })).toMatchObject({ result: 'done' });
    expect(await finalize('Delete')).toEqual({ result: 'done', dropped: ['orders'], forced: 0 });
  });

  test.each([
    new SecretsUnreadableError('SecretsForbidden', 'the Secrets of the workspace cannot be read'),
    cacheBehind('secrets of acme'),
  ])('waits for anything other than Redis for as long as necessary: $message', async fault => {
    const outcome = await finalize('Retain', { fault, deletingForMs: 3_600_000 });
    expect(outcome).toEqual({ result: fault.message, dropped: [], forced: 0 });
  });

  /** Finalizes a stream that has been delivering its remaining events for an hour. */
  async function drain() {
    const clock = createManualClock();
    const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
    const { context, forceRemoved } = createTestContext({ Workspace: [workspace] });
    const silent = { subscribe: () => () => {} };
    const { namespaces } = context.caches;
    const times = createDeletionTimes(
      { Workspace: silent, CatalogStream: silent, Package: silent, Subscription: silent, namespaces },
      clock,
    );
    const redis = { isAway: false, open: 1, awayForMs: 0 };
    const control = {
      readDrain: async () => {
        if (redis.isAway) throw new Error('Redis is unavailable');
        return { unrouted: 0, open: redis.open };
      },
    };
    const dataPlane = { awayForMs: () => redis.awayForMs };
    const full = { ...context, ...times, control, dataPlane, explain: (error: unknown) => error } as unknown as Context;
    const finalize = finalizeUnlessPaused(full, PAUSABLE.CatalogStream, finalizeStream(full), holdsEvents(full));
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    const spec = { retention: '1h', deletionPolicy: 'Retain' } as const;
    const stream = objectOf<'CatalogStream'>('orders', spec, { metadata: { deletionTimestamp } });
    const result = async () => {
      const outcome = await finalize(stream, {} as Attempt).catch((error: Error) => error.message);
      return typeof outcome === 'string' ? outcome : outcome.conditions[0]?.reason;
    };
    /** Finalizes the stream every five seconds, and returns the results without repetitions. */
    async function during(ms: number) {
      const results: (string | undefined)[] = [];
      for (let elapsedMs = 0; elapsedMs < ms; elapsedMs += 5_000) {
        const last = await result();
        if (results.at(-1) !== last) results.push(last);
        await clock.advance(5_000);
      }
      return results;
    }
    const store = context.caches.Workspace.store as unknown as { set: (name: string, value: object) => void };
    const pause = (paused: boolean) =>
      store.set('acme', {
        ...workspace,
        metadata: { ...workspace.metadata, annotations: paused ? { [PAUSED_ANNOTATION]: 'true' } : {} },
      });
    expect(await result()).toBe('Draining');
    await clock.advance(3_600_000);
    return { clock, redis, pause, during, namespaces, forceRemoved };
  }

  test('waits for each outage of Redis for one minute while it delivers the remaining events', async () => {
    const { redis, during, forceRemoved } = await drain();
    for (let outage = 0; outage < 2; outage++) {
      redis.isAway = true;
      expect(await during(60_000)).toEqual(['Redis is unavailable']);
      redis.isAway = false;
      expect(await during(5_000)).toEqual(['Draining']);
    }
    redis.isAway = true;
    expect(await during(65_000)).toEqual(['Redis is unavailable', 'done']);
    expect(forceRemoved).toEqual(['orders undefined']);
  });

  test('waits for each pause for one minute, and until the remaining events are delivered', async () => {
    const { pause, during, redis, forceRemoved } = await drain();
    pause(true);
    expect(await during(600_000)).toEqual(['WorkspacePaused']);
    pause(false);
    expect(await during(5_000)).toEqual(['Draining']);
    pause(true);
    redis.open = 0;
    expect(await during(65_000)).toEqual(['WorkspacePaused', 'done']);
    expect(forceRemoved).toEqual(['orders paused']);
  });

  test('is kept during a pause if Redis does not respond for a moment, but not if it is away or the namespace is deleted', async () => {
    const { pause, during, redis, namespaces, forceRemoved } = await drain();
    redis.isAway = true;
    pause(true);
    expect(await during(120_000)).toEqual(['WorkspacePaused']);
    redis.awayForMs = 60_000;
    expect(await during(5_000)).toEqual(['done']);
    redis.isAway = false;
    expect(await during(5_000)).toEqual(['WorkspacePaused']);
    (namespaces.store as unknown as Map<string, object>).set('acme', { workspace: 'acme', deleting: true });
    expect(await during(5_000)).toEqual(['done']);
    expect(forceRemoved).toEqual(['orders paused', 'orders paused']);
  });

  test('waits for Redis for one minute, and is then recorded as forced', async () => {
    const late = { drops: false, deletingForMs: 59_999 };
    expect(await finalize('Delete', late)).toEqual({ result: 'Redis is unavailable', dropped: [], forced: 0 });
    expect(await finalize('Delete', { ...late, deletingForMs: 60_000 })).toMatchObject({ result: 'done', forced: 1 });
  });
});

import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';
import { createWaits } from './wait.ts';

type Block = Cached<'Block'>;
type Said = readonly [type: string, status: string, observedGeneration: number, reason?: string];

function block(uid: string, generation: number, ...conditions: Said[]): Block {
  return {
    metadata: { name: 'blk-1', namespace: 'shop', uid, resourceVersion: '1', generation },
    spec: {},
    status: {
      conditions: conditions.map(([type, status, observedGeneration, reason = 'Because']) => ({
        type,
        status,
        observedGeneration,
        reason,
        message: 'as the test says',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      })),
    },
  } as unknown as Block;
}

function setUp(cached?: Block) {
  const clock = createManualClock();
  const handlers = new Set<(change: string, key: string, old: Block | undefined, current?: Block) => void>();
  let live: Block | undefined;
  let looks = 0;
  const caches = {
    get: () => cached,
    live: async () => {
      looks += 1;
      return live;
    },
    reflector: () => ({
      subscribe: (handler: typeof handlers extends Set<infer H> ? H : never) => {
        handlers.add(handler);
        return () => handlers.delete(handler);
      },
    }),
  } as unknown as Pick<Caches, 'get' | 'reflector' | 'live'>;
  return {
    clock,
    handlers,
    looks: () => looks,
    wait: createWaits(caches, clock),
    see: (object: Block | undefined, key = 'shop/blk-1') => {
      for (const handler of handlers) handler('updated', key, undefined, object);
    },
    seeDeleted: (object: Block) => {
      for (const handler of handlers) handler('deleted', 'shop/blk-1', object);
    },
    storeAs: (object: Block) => {
      live = object;
    },
  };
}

test('waits for an object whose reference is missing', async () => {
  const late = block('u', 1, ['Ready', 'False', 1, 'WaitingForTarget'], ['Stalled', 'True', 1, 'WaitingForTarget']);
  const { wait, see } = setUp(late);
  const waiting = wait('Block', late);
  see(block('u', 1, ['Ready', 'True', 1]));
  await expect(waiting).resolves.toMatchObject({ metadata: { uid: 'u' } });
});

test('a change that is already applied returns immediately, and does not keep any state', async () => {
  const { clock, handlers, wait } = setUp();
  const applied = block('u1', 2, ['Enforced', 'True', 2]);
  expect(await wait('Block', applied, 'Enforced')).toBe(applied);
  expect(handlers.size).toBe(0);
  expect(clock.pendingTimers()).toBe(0);
});

test.each<[string, Block]>([
  ['an earlier generation', block('u1', 2, ['Enforced', 'True', 1])],
  ['another object of the same name', block('u2', 2, ['Enforced', 'True', 2])],
  ['another condition', block('u1', 2, ['Ready', 'True', 2])],
  ['the condition not met', block('u1', 2, ['Enforced', 'Unknown', 2])],
])('%s is not sufficient: 503 after 5 s, and not before', async (_what, seen) => {
  const { clock, handlers, see, wait } = setUp();
  const answered = wait('Block', block('u1', 2), 'Enforced').then(
    () => 'in force',
    (error: { code: string }) => error.code,
  );
  see(seen);
  let answer: string | undefined;
  void answered.then(value => {
    answer = value;
  });
  await clock.advance(4_999);
  expect(answer).toBeUndefined();
  await clock.advance(1);
  expect(answer).toBe('not_in_force');
  expect(handlers.size).toBe(0);
});

test('the deletion of the object ends the call, and the deletion of an earlier one does not', async () => {
  const { clock, handlers, see, seeDeleted, wait } = setUp();
  const ended = wait('Block', block('u1', 2), 'Enforced');
  const kept = wait('Block', block('u2', 2), 'Enforced');
  seeDeleted(block('u1', 1));
  await expect(ended).rejects.toMatchObject({ code: 'changed_meanwhile' });
  see(block('u2', 2, ['Enforced', 'True', 2]));
  await expect(kept).resolves.toMatchObject({ metadata: { uid: 'u2' } });
  expect([handlers.size, clock.pendingTimers()]).toEqual([0, 0]);
});

test('is only notified about this object by the informer', async () => {
  const { see, wait } = setUp();
  const promise = wait('Block', block('u1', 2), 'Enforced');
  const other = block('u1', 9, ['Enforced', 'True', 9]);
  see(other, 'shop/blk-2');
  const inForce = block('u1', 3, ['Enforced', 'True', 3]);
  see(inForce);
  expect(await promise).toBe(inForce);
});

test('a late watch is replaced by reading the object after 1 and 3 s', async () => {
  const { clock, looks, storeAs, wait } = setUp();
  const promise = wait('Block', block('u1', 2), 'Enforced');
  await clock.advance(1_000);
  expect(looks()).toBe(1);
  const inForce = block('u1', 2, ['Enforced', 'True', 2]);
  storeAs(inForce);
  await clock.advance(2_000);
  expect(await promise).toBe(inForce);
});

describe('a pause that the facade did not know of', () => {
  const paused = block('u1', 2, ['Ready', 'Unknown', 2, 'WorkspacePaused']);

  test('refuses the call as soon as the status shows it', async () => {
    const { clock, see, wait } = setUp();
    const refused = wait('Block', block('u1', 2)).catch((error: { code: string }) => error.code);
    see(block('u1', 2, ['Ready', 'Unknown', 1, 'WorkspacePaused']));
    see(paused);
    await clock.advance(5_000);
    expect(await refused).toBe('workspace_paused');
  });

  test('may be over if only an earlier status shows it', async () => {
    const { clock, see, storeAs, wait } = setUp(paused);
    const inForce = block('u1', 2, ['Ready', 'True', 2]);
    const ended = wait('Block', paused);
    see(inForce);
    expect(await ended).toBe(inForce);
    const refused = wait('Block', paused).catch((error: { code: string }) => error.code);
    storeAs(paused);
    await clock.advance(1_000);
    expect(await refused).toBe('workspace_paused');
  });

  test('is no obstacle for changes that only close', async () => {
    const { clock, wait } = setUp(paused);
    const closed = wait('Block', block('u1', 2), 'Ready', 'closed').catch((error: { code: string }) => error.code);
    await clock.advance(5_000);
    expect(await closed).toBe(paused);
  });
});

test.each([
  ['NamespaceNotAdopted', true],
  ['NamespaceTerminating', false],
  ['WaitingForAccount', true],
])('%s is no obstacle for changes that only close', async (reason, isStalled) => {
  const stalled: Said[] = isStalled ? [['Stalled', 'True', 2, reason]] : [];
  const object = block('u1', 2, ['Ready', 'False', 2, reason], ...stalled);
  const { clock, see, wait } = setUp();
  const closed = wait('Block', block('u1', 2), 'Ready', 'closed').catch((error: { code: string }) => error.code);
  see(object);
  await clock.advance(5_000);
  expect(await closed).toBe(object);
});

test('a failure that requires a change of the object returns immediately, with the reason', async () => {
  const { see, wait } = setUp();
  const promise = wait('Block', block('u1', 2));
  see(block('u1', 2, ['Stalled', 'True', 1, 'Old']));
  see(block('u1', 2, ['Stalled', 'True', 2, 'Duplicate']));
  await expect(promise).rejects.toMatchObject({
    code: 'not_reconcilable',
    message: expect.stringContaining('Duplicate'),
  });
});

import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import type { Completion } from '../../../part/claims/exchange.ts';
import type { HeldClaim } from './held-claim.ts';
import type { OpenedSlot } from './opened-slots.ts';
import { createSlotQueues } from './slot-queues.ts';

const SLOT = 'slot-one';

function heldClaim(ref: string, slot = SLOT): HeldClaim {
  const claim = { slot, lane: ref, ref, behind: false, attempts: 0, lapses: 0, replay: undefined };
  const event = { ref, groupKey: ref, meta: '', size: 0, body: Buffer.alloc(0), claims: [claim] };
  return { claim, event, atMs: 0, behind: false, next: undefined };
}

/** Queues whose slot is opened as `state` describes it. An attempt lasts until `end` is called. */
function startQueues(slot: { cap?: number; send?: 'open' | 'held'; validUntilMs?: number } = {}) {
  const defaults = {
    version: '1',
    wallMs: 0,
    isFresh: true,
    exists: true,
    cap: 9,
    send: 'open',
    validUntilMs: Infinity,
  };
  const state = { ...defaults, ...slot };
  const sent: string[] = [];
  const finished: string[] = [];
  let opened = 0;
  const ends: (() => void)[] = [];
  const queues = createSlotQueues({
    openSlots: async slots => {
      opened++;
      const { exists, cap, send, validUntilMs } = state;
      if (!exists) return slots.map(() => undefined);
      return slots.map(name => ({ row: { cap, send }, name, subscription: { validUntilMs } }) as unknown as OpenedSlot);
    },
    version: () => state.version,
    wallMs: () => state.wallMs,
    isFresh: () => state.isFresh,
    send: (_slot, { claim: { lane, ref } }) => {
      sent.push(ref);
      return new Promise<Completion>(resolve => {
        ends.push(() => resolve({ lane, ref, outcome: 'delivered', reason: '200' }));
      });
    },
    finish: (_held, { ref, outcome }) => finished.push(`${ref} ${outcome}`),
    onError: error => {
      throw error;
    },
  });
  return {
    state,
    sent,
    finished,
    opened: () => opened,
    queues,
    add: async (...refs: string[]) => {
      for (const ref of refs) queues.add(heldClaim(ref));
      await nextTurn();
    },
    end: async () => {
      ends.shift()?.();
      await nextTurn();
    },
  };
}

test('a subscription has at most as many attempts at the same time as its cap', async () => {
  const { sent, finished, add, end } = startQueues({ cap: 2 });
  await add('a', 'b', 'c', 'd');
  expect(sent).toEqual(['a', 'b']);
  await end();
  expect([sent, finished]).toEqual([['a', 'b', 'c'], ['a delivered']]);
});

test('claims of a subscription that does not send are returned', async () => {
  const { sent, finished, add } = startQueues({ send: 'held' });
  await add('a', 'b');
  expect([sent, finished]).toEqual([[], ['a released', 'b released']]);
});

test('a claim that is too old when it is its turn is returned, and not earlier', async () => {
  const { state, sent, finished, add, end } = startQueues({ cap: 1 });
  await add('a', 'b');
  state.isFresh = false;
  expect(finished).toEqual([]);
  await end();
  expect([sent, finished]).toEqual([['a'], ['a delivered', 'b released']]);
});

test('a subscription is opened again if its row has changed, or if its signing keys change', async () => {
  const { state, sent, opened, add } = startQueues({ validUntilMs: 1_000 });
  await add('a');
  state.wallMs = 999;
  await add('b');
  expect(opened()).toBe(1);
  state.version = '2';
  await add('c');
  expect(opened()).toBe(2);
  Object.assign(state, { wallMs: 1_000, validUntilMs: Infinity });
  await add('d');
  expect([opened(), sent]).toEqual([3, ['a', 'b', 'c', 'd']]);
});

test('claims of a subscription that cannot be opened are returned, and it is opened again for the next claim', async () => {
  const { state, sent, finished, add } = startQueues();
  state.exists = false;
  await add('a');
  await vi.waitFor(() => expect(finished).toEqual(['a released']), { timeout: 10_000 });
  state.exists = true;
  await add('b');
  expect(sent).toEqual(['b']);
});

test('16 attempts are started in a turn of the event loop, and subscriptions take turns', async () => {
  const { queues, sent } = startQueues({ cap: 100 });
  const [one, two] = ['slot-one', 'slot-two'];
  queues.add(heldClaim('1', one));
  queues.add(heldClaim('2', two));
  await nextTurn();
  await nextTurn();
  expect(sent.splice(0)).toEqual(['1', '2']);
  const backlog = Array.from({ length: 40 }, (_, i) => `b${i}`);
  for (const ref of backlog) queues.add(heldClaim(ref, one));
  queues.add(heldClaim('new', two));
  expect(sent).toEqual(backlog.slice(0, 16));
  await nextTurn();
  expect(sent).toEqual([...backlog.slice(0, 17), 'new', ...backlog.slice(17, 31)]);
  await nextTurn();
  expect(sent).toHaveLength(41);
});

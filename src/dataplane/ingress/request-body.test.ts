import type { IncomingMessage } from 'node:http';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { usedMemory } from '../../../test/support/used-memory.ts';
import { type BodyResult, createByteBudget, type Holding, readRequestBody } from './request-body.ts';

/** Takes one byte at a time until there is no capacity left for the workspace. */
function fill(budget: ReturnType<typeof createByteBudget>, tenant: string): { taken: number; holding: Holding } {
  const holding = budget.open({ tenant, queue: 'orders' });
  let taken = 0;
  while (holding.take(1)) taken++;
  return { taken, holding };
}

test('a workspace holds at most as much as it leaves free, for all of its requests', () => {
  const budget = createByteBudget(1_000);
  const [one, again] = [fill(budget, 'a'), fill(budget, 'a')];
  expect([one.taken, again.taken]).toEqual([500, 0]);
  expect(fill(budget, 'b').taken).toBe(250);
  expect(budget.held()).toBe(750);
});

test('a hold is only released once', () => {
  const budget = createByteBudget(1_000);
  const { holding } = fill(budget, 'a');
  expect(budget.open({ tenant: 'a', queue: 'others' }).take(1)).toBe(false);
  holding.release();
  holding.release();
  expect(budget.held()).toBe(0);
  expect(fill(budget, 'a').taken).toBe(500);
});

test('the streams of a master leave half of the budget, regardless of the number of workspaces', () => {
  const budget = createByteBudget(8_000, (_tenant, queue) => (queue === 'orders' ? 'silent' : 'well'));
  const holdings = Array.from({ length: 200 }, (_, index) => fill(budget, `t${index}`));
  expect(holdings[0]?.taken).toBe(2_000);
  expect(budget.held()).toBeGreaterThan(3_900);
  expect(budget.held()).toBeLessThanOrEqual(4_000);
  const well = budget.open({ tenant: 't0', queue: 'others' });
  expect([well.take(500), budget.open({ tenant: 'new', queue: 'others' }).take(500)]).toEqual([true, true]);
  for (const { holding } of holdings) holding.release();
  expect(budget.held()).toBe(1_000);
});

/** Reads a body of this size whose bytes are sent by the test. */
function receive(budget: ReturnType<typeof createByteBudget>, tenant: string, size: number) {
  const request = Object.assign(new PassThrough(), { headers: { 'content-length': `${size}` } });
  const reading = { request, result: undefined as BodyResult | undefined };
  const holding = budget.open({ tenant, queue: 'orders' });
  readRequestBody(request as unknown as IncomingMessage, { bodyBytes: 1_000, holding }, body => {
    reading.result = body;
    if (body === 'overloaded') holding.release();
  });
  return reading;
}

test('a body only begins to arrive if there is room for all of it, so it is not refused in the middle', () => {
  const budget = createByteBudget(1_000);
  const first = receive(budget, 'a', 400);
  first.request.emit('data', Buffer.alloc(100));
  expect([receive(budget, 'a', 200).result, budget.held()]).toEqual(['overloaded', 400]);
  for (const tenant of ['b', 'c', 'd']) fill(budget, tenant);
  expect(budget.held()).toBeGreaterThan(900);
  first.request.emit('data', Buffer.alloc(300));
  first.request.emit('end');
  expect(first.result).toHaveLength(400);
});

test('a body that arrives byte by byte only takes the memory of its bytes', () => {
  const bodyBytes = 100_000;
  const holding = createByteBudget(bodyBytes * 4).open({ tenant: 'a', queue: 'orders' });
  const request = Object.assign(new PassThrough(), { headers: { 'transfer-encoding': 'chunked' } });
  let result: BodyResult | undefined;
  const before = usedMemory();
  readRequestBody(request as unknown as IncomingMessage, { bodyBytes, holding }, body => {
    result = body;
  });
  for (let i = 0; i < bodyBytes; i++) request.emit('data', Buffer.alloc(1, 'x'));
  expect(usedMemory() - before).toBeLessThan(10 * bodyBytes);
  request.emit('end');
  expect(String(result)).toBe('x'.repeat(bodyBytes));
});

import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { Claim } from '../../../part/claims/message.ts';
import { createClaimBook } from './claim-book.ts';
import type { HeldClaim } from './held-claim.ts';

function heldClaim(lane: string, lapses: number): HeldClaim {
  const claim: Claim = { slot: '1', lane, ref: lane, behind: false, attempts: 0, lapses, replay: undefined };
  const event = { ref: lane, groupKey: lane, meta: '', size: 0, body: Buffer.alloc(0), claims: [claim] };
  return { claim, event, atMs: 0, behind: false, next: undefined };
}

const completionOf = ({ claim: { lane, ref } }: HeldClaim) => ({ lane, ref, outcome: 'delivered' }) as never;

test('only holds events alone whose claims have lapsed twice', () => {
  const book = createClaimBook();
  const once = heldClaim('a', 1);
  const twice = heldClaim('b', 2);
  book.take(once);
  expect(book.holdsAlone()).toBe(false);
  book.take(twice);
  expect(book.holdsAlone()).toBe(true);
  book.end(twice, completionOf(twice));
  expect(book.holdsAlone()).toBe(false);
  book.end(once, completionOf(once));
  expect(book.holdsAlone()).toBe(false);
});

test('holds an event alone that follows another one in its lane', () => {
  const book = createClaimBook();
  const first = heldClaim('a', 0);
  const next = { ...heldClaim('a', 2), claim: { ...heldClaim('a', 2).claim, ref: 'later' } };
  book.take(first);
  expect(book.take(next)).toBe(false);
  expect(book.holdsAlone()).toBe(false);
  expect(book.end(first, completionOf(first))).toBe(next);
  expect(book.holdsAlone()).toBe(true);
});

test('completions that were not written are written again, before those that have ended since', () => {
  const book = createClaimBook();
  const [first, second] = [heldClaim('a', 0), heldClaim('b', 0)];
  for (const claim of [first, second]) book.take(claim);
  book.end(first, completionOf(first));
  expect(book.toWrite()).toBe('some');
  expect(book.startWriting(10)).toEqual([completionOf(first)]);
  book.end(second, completionOf(second));
  book.notWritten();
  expect([book.toWrite(), book.count()]).toEqual(['urgent', 2]);
  expect(book.startWriting(10)).toEqual([completionOf(first), completionOf(second)]);
  expect([book.written(), book.count()]).toEqual([2, 0]);
});

test('claims that have ended are removed from memory by collections of young objects', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as (options?: { type: 'minor' }) => void;
  const oldMib = () =>
    (getHeapSpaceStatistics().find(({ space_name }) => space_name === 'old_space')?.space_used_size ?? 0) / 2 ** 20;
  const book = createClaimBook();
  const held: HeldClaim[] = [];
  const holdNext = (number: number) => {
    const ended = held.length === 128 ? held.shift() : undefined;
    if (ended !== undefined) book.end(ended, completionOf(ended));
    const claim = heldClaim(`lane ${number % 128}`, 0);
    book.take({ ...claim, event: { ...claim.event, meta: Array.from({ length: 64 }, () => number) as never } });
    held.push(claim);
    book.startWriting(10);
    book.written();
  };
  for (let i = 0; i < 200; i++) holdNext(i);
  // The claims and their map are old objects now.
  collect();
  const beforeMib = oldMib();
  for (let i = 200; i < 20_200; i++) {
    holdNext(i);
    if (i % 1_000 === 0) collect({ type: 'minor' });
  }
  expect(oldMib() - beforeMib).toBeLessThan(4);
});

test('claims are looked up until their completions are written, in linear time', () => {
  const book = createClaimBook();
  const held = Array.from({ length: 1_000 }, (_, i) => heldClaim(`lane ${i}`, 0));
  let reads = 0;
  for (const [i, claim] of held.entries()) {
    book.take(claim);
    const { lane, ref } = claim.claim;
    const completion = {
      get lane() {
        reads++;
        return lane;
      },
      ref,
    };
    if (i >= 10) book.end(claim, completion as never);
  }
  book.startWriting(256);
  reads = 0;
  const isKnown = book.lookUp();
  expect(held.every(({ claim: { lane, ref } }) => isKnown(lane, ref))).toBe(true);
  expect([isKnown('lane 5', 'other'), isKnown('lane 500', 'other'), isKnown('other', 'lane 5')]).not.toContain(true);
  expect(reads).toBeLessThanOrEqual(held.length);
  book.written();
  expect(held.filter(({ claim: { lane, ref } }) => book.lookUp()(lane, ref))).toHaveLength(1_000 - 256);
});

import { expect, test } from 'vitest';
import type { Claim } from '../../part/claims/message.ts';
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
  expect(book.startWriting()).toEqual([completionOf(first)]);
  book.end(second, completionOf(second));
  book.notWritten();
  expect([book.toWrite(), book.count()]).toEqual(['urgent', 2]);
  expect(book.startWriting()).toEqual([completionOf(first), completionOf(second)]);
  expect([book.written(), book.count()]).toEqual([2, 0]);
});

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createDelayHeap } from './delay-heap.ts';

describe('delay heap', () => {
  it('returns each key once, at its earliest time, in order', () => {
    const adds = fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.nat(50)), { maxLength: 60 });
    fc.assert(
      fc.property(adds, entries => {
        const heap = createDelayHeap();
        const earliest = new Map<string, number>();
        for (const [key, atMs] of entries) {
          heap.add(key, atMs);
          earliest.set(key, Math.min(atMs, earliest.get(key) ?? atMs));
        }
        expect(heap.size()).toBe(earliest.size);
        const taken: [string, number][] = [];
        for (let nowMs = 0; nowMs <= 50; nowMs++) {
          for (let key = heap.take(nowMs); key !== undefined; key = heap.take(nowMs)) taken.push([key, nowMs]);
        }
        expect(new Map(taken)).toEqual(earliest);
        expect(taken).toHaveLength(earliest.size);
        expect(heap.nextMs()).toBeUndefined();
      }),
    );
  });
});

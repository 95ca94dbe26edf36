import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Condition } from '../../api/conditions.ts';
import { type DesiredCondition, findCondition, mergeConditions } from './conditions.ts';

const MINUTE_MS = 60_000;
const desired = (type: string, status: Condition['status'] = 'True', reason = 'Because'): DesiredCondition => ({
  type,
  status,
  reason,
  message: 'm',
});
const first = mergeConditions([], [desired('Ready')], { generation: 1, nowMs: 0 });

const anyDesired = fc.record({
  type: fc.constantFrom('Ready', 'Reconciling', 'Stalled', 'Published', 'Live'),
  status: fc.constantFrom<Condition['status']>('True', 'False', 'Unknown'),
  reason: fc.constantFrom('One', 'Two'),
  message: fc.string({ maxLength: 3_000, unit: 'grapheme' }),
});

describe('conditions', () => {
  it('only changes lastTransitionTime if the status changes', () => {
    const reworded = mergeConditions(first, [desired('Ready', 'True', 'Other')], { generation: 2, nowMs: MINUTE_MS });
    expect(reworded).toMatchObject([
      { reason: 'Other', observedGeneration: 2, lastTransitionTime: '1970-01-01T00:00:00Z' },
    ]);
    const flipped = mergeConditions(reworded, [desired('Ready', 'False')], { generation: 2, nowMs: MINUTE_MS });
    expect(flipped[0]?.lastTransitionTime).toBe('1970-01-01T00:01:00Z');
  });

  it('always includes Ready', () => {
    expect(mergeConditions([], [desired('Live')], { generation: 1, nowMs: 0 })).toMatchObject([
      { type: 'Ready', status: 'Unknown' },
      { type: 'Live' },
    ]);
  });

  it('only includes Reconciling and Stalled while they are True', () => {
    const desiredConditions = [desired('Ready'), desired('Reconciling', 'False'), desired('Stalled', 'Unknown')];
    expect(mergeConditions([], desiredConditions, { generation: 1, nowMs: 0 }).map(({ type }) => type)).toEqual([
      'Ready',
    ]);
  });

  it('keeps the generation of conditions that were set earlier', () => {
    const kept = { ...desired('Live'), observedGeneration: 3 };
    const merged = mergeConditions([], [desired('Ready', 'False'), kept], { generation: 5, nowMs: 0 });
    expect(merged.map(({ observedGeneration }) => observedGeneration)).toEqual([5, 3]);
  });

  it('is valid and stable, and contains each type once', () => {
    fc.assert(
      fc.property(fc.array(anyDesired, { maxLength: 8 }), fc.array(anyDesired, { maxLength: 8 }), (before, after) => {
        const existing = mergeConditions([], before, { generation: 1, nowMs: 0 });
        const merged = mergeConditions(existing, after, { generation: 2, nowMs: MINUTE_MS });
        for (const condition of merged) expect(Condition.safeParse(condition).error).toBeUndefined();
        expect(new Set(merged.map(({ type }) => type)).size).toBe(merged.length);
        expect(merged[0]?.type).toBe('Ready');
        expect(mergeConditions(merged, after, { generation: 2, nowMs: 2 * MINUTE_MS })).toEqual(merged);
        for (const { type, status, lastTransitionTime } of merged) {
          const was = findCondition(existing, type);
          expect(lastTransitionTime === was?.lastTransitionTime).toBe(was?.status === status);
        }
      }),
    );
  });
});

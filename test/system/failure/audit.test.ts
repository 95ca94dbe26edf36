import { describe, expect, it } from 'vitest';
import { faultsOf } from '../support/audit.ts';
import { makeSample } from '../support/publisher.ts';
import type { Receiver, Recorded } from '../support/receiver.ts';

const [a0, a1, b0] = [makeSample('a.0', 'a', 'zero'), makeSample('a.1', 'a', 'one'), makeSample('b.0', 'b', 'b')];
const SAMPLES = [a0, a1, b0];

type Seen = readonly [sample: ReturnType<typeof makeSample>, status: Recorded['status']];

/** Returns the audit result for a partner with these attempts. */
function audit(seen: readonly Seen[], crashes = 0): string[] {
  const attempts = seen.map(([{ id, groupKey = '', sha256 }, status]) => ({
    subscription: 'ada',
    id,
    groupKey,
    sha256,
    status,
  }));
  return faultsOf({ attempts } as unknown as Receiver, 'ada', SAMPLES, { crashes });
}

describe('the audit of deliveries', () => {
  it('does not report anything in a run without errors, including failures and lost responses', () => {
    expect(
      audit([
        [b0, 204],
        [a0, 500],
        [a0, 'lost'],
        [a0, 204],
        [a1, 204],
      ]),
    ).toEqual([]);
  });

  it.each<[string, Seen[], string]>([
    [
      'a missing event',
      [
        [a0, 204],
        [b0, 204],
      ],
      'ada: 1 missing, as a.1',
    ],
    [
      'one that only failed',
      [
        [a0, 204],
        [a1, 500],
        [b0, 204],
      ],
      'ada: 1 missing, as a.1',
    ],
    [
      'one that overtook another',
      [
        [a1, 204],
        [a0, 204],
        [b0, 204],
      ],
      'ada: 1 reordered, as a.1',
    ],
    [
      'one that overtook a failed one',
      [
        [b0, 204],
        [a0, 500],
        [a1, 204],
        [a0, 204],
      ],
      'ada: 1 reordered, as a.1',
    ],
    [
      'one that was sent twice',
      [
        [a0, 204],
        [a0, 204],
        [a1, 204],
        [b0, 204],
      ],
      'ada: 1 repeated, as a.0',
    ],
    [
      'other bytes',
      [
        [{ ...a0, sha256: 'x' }, 204],
        [a1, 204],
        [b0, 204],
      ],
      'ada: 1 changed, as a.0',
    ],
    [
      'another group key',
      [
        [{ ...b0, groupKey: 'a' }, 500],
        [b0, 204],
        [a0, 204],
        [a1, 204],
      ],
      'ada: 1 changed, as b.0',
    ],
    [
      'one that must not come',
      [
        [a0, 204],
        [a1, 204],
        [b0, 204],
        [makeSample('c.0', 'c', ''), 204],
      ],
      'ada: 1 unexpected, as c.0',
    ],
  ])('reports %s', (_what, seen, fault) => {
    expect(audit(seen)).toContain(fault);
  });

  it('allows one repetition per crash, but no event out of order', () => {
    expect(
      audit(
        [
          [a0, 204],
          [a0, 204],
          [a1, 204],
          [b0, 204],
        ],
        1,
      ),
    ).toEqual([]);
    expect(
      audit(
        [
          [a0, 204],
          [a0, 204],
          [a0, 204],
          [a1, 204],
          [b0, 204],
        ],
        1,
      ),
    ).toEqual(['ada: 1 repeated, as a.0']);
    expect(
      audit(
        [
          [a0, 204],
          [a1, 204],
          [a0, 204],
          [b0, 204],
        ],
        1,
      ),
    ).toEqual(['ada: 1 reordered, as a.0']);
  });
});

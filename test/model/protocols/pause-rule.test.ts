import { describe, expect, test } from 'vitest';
import { type Difference, everyDifference, type Openings, type PauseRule, passes } from './pause-rule.ts';

const SECONDS = 18;
const differences = (rule: PauseRule, kind: Difference['kind']) =>
  [...everyDifference(rule, SECONDS)].filter(difference => difference.kind === kind);

/** How long after its acceptance the key of the event opened, in seconds. */
function openedAfter({ openings, accepted }: Difference): number {
  const first = openings.find(([, to]) => to > accepted);
  return Math.max(0, (first?.[0] ?? Number.POSITIVE_INFINITY) - accepted);
}

describe('a pause never gives a partner more than no pause', () => {
  test('but for an event whose key opened within its first ten seconds, or two when it waited longer', () => {
    const more = differences('since', 'more');
    expect(more.length).toBeGreaterThan(0);
    for (const difference of more) {
      const waited = difference.pause[1] + difference.delay - difference.accepted;
      expect(openedAfter(difference), JSON.stringify(difference)).toBeLessThanOrEqual(waited <= 10 ? 10 : 2);
    }
  });

  test('it takes only what was closed meanwhile: closing during a pause cancels what is held', () => {
    const less = differences('since', 'less');
    expect(less.length).toBeGreaterThan(0);
    for (const { openings, accepted, pause, delay } of less) {
      const closed = openings.some(([, to]) => to > accepted && to <= pause[1] + delay);
      expect(closed).toBe(true);
    }
  });

  test('asking only whether the key is open gives what was accepted long before it was opened', () => {
    expect(differences('open now', 'more').some(difference => openedAfter(difference) > 10)).toBe(true);
  });
});

describe('an event accepted after its activation is routed, though the clock that accepted it was up to 2 s behind', () => {
  const held: Openings = [[100, Number.POSITIVE_INFINITY]];

  test.each([0, 1, 2])('%i s behind, whether it is held for long or not', behind => {
    for (const waits of [0, 10, 11, 3_600]) expect(passes('since', held, 100 - behind, 100 + waits)).toBe(true);
  });

  test('not without the margins', () => {
    expect(passes('since, exactly', held, 99, 111)).toBe(false);
  });
});

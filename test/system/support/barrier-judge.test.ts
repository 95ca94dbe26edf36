import { describe, expect, it } from 'vitest';
import { type History, judgeBarriers } from './barrier-judge.ts';

const ALLOWED_MS = 1_000;

/** The lever is closed from 200 to 5,000, when opening is requested, and open from 5,100. */
const CLOSING = { to: 'closed', askedMs: 100, answeredMs: 200 } as const;
const OPENING = { to: 'open', askedMs: 5_000, answeredMs: 5_100 } as const;

const judge = (more: Partial<History>) =>
  judgeBarriers([{ lever: 'ada/key', changes: [CLOSING, OPENING], decisions: [], arrivals: [], ...more }], ALLOWED_MS);

describe('the judge of barriers', () => {
  it('does not report anything if all responses were correct, or if the order is not known', () => {
    const { violations, judged } = judge({
      changes: [{ ...CLOSING, routed: [] }, OPENING],
      decisions: [
        { id: 'before', sentMs: 50, answeredMs: 90, routed: true },
        { id: 'during the closing', sentMs: 150, answeredMs: 160, routed: true },
        { id: 'closed', sentMs: 300, answeredMs: 400, routed: false },
        { id: 'decided after the opening', sentMs: 4_900, answeredMs: 5_200, routed: true },
        { id: 'open', sentMs: 5_200, answeredMs: 5_300, routed: true },
      ],
      arrivals: [
        { id: 'claimed before', sentMs: 50, atMs: 1_150 },
        { id: 'of an unknown age', sentMs: undefined, atMs: 900 },
        { id: 'after the opening', sentMs: 300, atMs: 5_050 },
      ],
    });
    expect(violations).toEqual([]);
    expect(judged).toEqual({ openings: 1, closings: 1, whileOpen: 1, whileClosed: 1, longClosings: 1 });
  });

  it.each<[string, Partial<History>, string]>([
    [
      'an event that Redis has routed while the lever was closed',
      { changes: [{ ...CLOSING, routed: ['17-0'] }, OPENING] },
      'ada/key: 17-0 was routed after the answer of a closing',
    ],
    [
      'an event that was accepted after a closing, and routed',
      { decisions: [{ id: 'e', sentMs: 201, answeredMs: 4_999, routed: true }] },
      'ada/key: e was accepted after the answer of a closing, and routed',
    ],
    [
      'an event that was accepted after an opening, and not routed',
      { decisions: [{ id: 'e', sentMs: 5_101, answeredMs: 5_102, routed: false }] },
      'ada/key: e was accepted after the answer of an opening, and not routed',
    ],
    [
      'an attempt that is too late after closing',
      { arrivals: [{ id: 'e', sentMs: 50, atMs: 1_300 }] },
      'ada/key: e was attempted 1100 ms after the answer of a closing',
    ],
    [
      'any attempt of an event that was accepted after closing',
      { arrivals: [{ id: 'e', sentMs: 201, atMs: 210 }] },
      'ada/key: e was attempted although it came after the answer of a closing',
    ],
    [
      'an attempt behind a lever that is never opened again',
      { changes: [CLOSING], arrivals: [{ id: 'e', sentMs: 50, atMs: 60_000 }] },
      'ada/key: e was attempted 59800 ms after the answer of a closing',
    ],
  ])('reports %s', (_what, history, violation) => {
    expect(judge(history).violations).toEqual([violation]);
  });

  it('allows attempts that arrived late because this process did not run', () => {
    const history: History = {
      lever: 'ada/key',
      changes: [CLOSING, OPENING],
      decisions: [],
      arrivals: [{ id: 'e', sentMs: 50, atMs: 1_300 }],
    };
    expect(judgeBarriers([history], ALLOWED_MS, [{ fromMs: 100, toMs: 300 }]).violations).toEqual([]);
    expect(judgeBarriers([history], ALLOWED_MS, [{ fromMs: 1_290, toMs: 1_500 }]).violations).toHaveLength(1);
  });
});

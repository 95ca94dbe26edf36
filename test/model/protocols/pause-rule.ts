/** When a group key is open, in seconds: from each first to each second. */
export type Openings = readonly (readonly [from: number, to: number])[];

/**
 * What is asked of an event that a pause held back. `since`, as `route` does it: beyond ten seconds the key must be open
 * since the event was accepted, give or take two. `open now`: only that it is open. `since, exactly`: without the margins.
 */
export type PauseRule = 'since' | 'open now' | 'since, exactly';

const openAt = (openings: Openings, second: number) => openings.find(([from, to]) => from <= second && second < to);

/** Is an event that was accepted at `accepted` routed at `routed`? */
export function passes(rule: PauseRule, openings: Openings, accepted: number, routed: number): boolean {
  const opening = openAt(openings, routed);
  if (opening === undefined) return false;
  const [since] = opening;
  if (rule === 'open now') return true;
  if (rule === 'since, exactly') return accepted >= since;
  return routed - accepted <= 10 || accepted >= since - 2;
}

/** One event that a pause gave a partner (`more`), or took from it (`less`), against the same without the pause. */
export interface Difference {
  readonly kind: 'more' | 'less';
  readonly openings: Openings;
  readonly accepted: number;
  /** The pause, in which the event is not routed. */
  readonly pause: readonly [from: number, to: number];
  /** Seconds that the router takes besides. */
  readonly delay: number;
}

/** Every history of two openings, one event and one pause within so many seconds, compared with that of no pause. */
export function* everyDifference(rule: PauseRule, seconds: number): Generator<Difference> {
  const times = Array.from({ length: seconds }, (_, i) => i);
  const after = (first: number) => times.filter(time => time > first);
  for (const first of times) {
    for (const closed of after(first)) {
      for (const again of [...after(closed), seconds]) {
        const openings: Openings = [
          [first, closed],
          [again, Number.POSITIVE_INFINITY],
        ];
        for (const accepted of times) {
          for (const end of after(accepted)) {
            for (const delay of [0, 1]) {
              const without = passes(rule, openings, accepted, accepted + delay);
              const held = passes(rule, openings, accepted, end + delay);
              if (without === held) continue;
              yield { kind: held ? 'more' : 'less', openings, accepted, pause: [accepted, end], delay };
            }
          }
        }
      }
    }
  }
}

/**
 * The changes of a lever, which is either an activation or a Block. A single client alternately closes and opens the
 * lever, which is open at first. All times are in milliseconds, using the same clock.
 */
export interface History {
  readonly lever: string;
  readonly changes: readonly Change[];
  /** Events that only depend on this lever, and their outcome. */
  readonly decisions: readonly Decision[];
  /** Attempts at an endpoint behind the lever. */
  readonly arrivals: readonly Arrival[];
}

export interface Change {
  readonly to: 'open' | 'closed';
  /** The time of the request. The change cannot have been applied before. */
  readonly askedMs: number;
  /** The time at which the condition showed the change as applied. */
  readonly answeredMs: number;
  /**
   * If the lever was closed: the events routed behind the lever between a read after the response, and a read before
   * the next opening.
   */
  readonly routed?: readonly string[];
}

export interface Decision {
  readonly id: string;
  /** The time at which the event was sent to ingress. It cannot have been accepted before. */
  readonly sentMs: number;
  /** The time of the response of ingress. At this time, the event has been evaluated. */
  readonly answeredMs: number;
  readonly routed: boolean;
}

export interface Arrival {
  readonly id: string;
  /** The time at which the event was sent to ingress, or undefined if it is not known. */
  readonly sentMs: number | undefined;
  /** The time at which the attempt was received. */
  readonly atMs: number;
}

/** A period in which this process did not run, so that arrivals were recorded late. */
export interface Stall {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface Verdict {
  /** One line for each violation. Empty if there are none. */
  readonly violations: readonly string[];
  /** The number of checks, because a history without any changes does not prove anything. */
  readonly judged: {
    readonly openings: number;
    readonly closings: number;
    /**
     * The number of events that were accepted and evaluated while the lever was certainly open, or certainly closed.
     */
    readonly whileOpen: number;
    readonly whileClosed: number;
    /** The number of closed periods that were longer than attempts may take. */
    readonly longClosings: number;
  };
}

/**
 * Compares events and attempts with the responses. After a response to closing, no events are routed and no attempts
 * are claimed. Events that are accepted after a response to opening are routed.
 * @param allowedMs how long after the response to closing an attempt that was claimed before may be received, in
 * addition to the `stalls` in between
 */
export function judgeBarriers(
  histories: readonly History[],
  allowedMs: number,
  stalls: readonly Stall[] = [],
): Verdict {
  const stalledMs = (fromMs: number, toMs: number) =>
    stalls.reduce((sum, stall) => sum + Math.max(0, Math.min(toMs, stall.toMs) - Math.max(fromMs, stall.fromMs)), 0);
  const violations: string[] = [];
  const judged = { openings: 0, closings: 0, whileOpen: 0, whileClosed: 0, longClosings: 0 };
  for (const { lever, changes, decisions, arrivals } of histories) {
    const blame = (what: string) => violations.push(`${lever}: ${what}`);
    const turns = changes.map((change, n) => ({
      ...change,
      endMs: changes[n + 1]?.askedMs ?? Number.POSITIVE_INFINITY,
    }));
    for (const { to, answeredMs, endMs, routed = [] } of turns) {
      if (to === 'open') judged.openings++;
      else judged.closings++;
      if (to === 'closed' && endMs - answeredMs > allowedMs) judged.longClosings++;
      for (const id of routed) blame(`${id} was routed after the answer of a closing`);
    }
    /**
     * Returns the change that was applied during the whole period between two times, or undefined if this is not
     * certain.
     */
    const turnOf = (fromMs: number, toMs: number) =>
      turns.find(({ answeredMs, endMs }) => answeredMs < fromMs && toMs < endMs);
    for (const { id, sentMs, answeredMs, routed } of decisions) {
      const to = turnOf(sentMs, answeredMs)?.to;
      if (to === 'open') judged.whileOpen++;
      if (to === 'closed') judged.whileClosed++;
      if (to === 'open' && !routed) blame(`${id} was accepted after the answer of an opening, and not routed`);
      if (to === 'closed' && routed) blame(`${id} was accepted after the answer of a closing, and routed`);
    }
    for (const { id, sentMs, atMs } of arrivals) {
      const turn = turns.find(({ answeredMs, endMs }) => answeredMs < atMs && atMs < endMs);
      if (turn?.to !== 'closed') continue;
      const afterMs = atMs - turn.answeredMs - stalledMs(turn.answeredMs, atMs);
      if (afterMs > allowedMs) blame(`${id} was attempted ${Math.round(afterMs)} ms after the answer of a closing`);
      else if (sentMs !== undefined && sentMs > turn.answeredMs) {
        blame(`${id} was attempted although it came after the answer of a closing`);
      }
    }
  }
  return { violations, judged };
}

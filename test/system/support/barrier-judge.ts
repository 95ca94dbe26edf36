/**
 * The changes of a lever, which is either the pair of an activation or a Block. It is turned by one hand, alternately,
 * and begins open. All times are in ms of the same clock.
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
  /** The time of the request, before which it can't have been applied. */
  readonly askedMs: number;
  /** When the condition showed it as applied. */
  readonly answeredMs: number;
  /**
   * For a closing: events routed behind the lever between a read after the response, and a read before the next
   * opening.
   */
  readonly routed?: readonly string[];
}

export interface Decision {
  readonly id: string;
  /** The time at which it was sent to ingress, before which it can't have been accepted. */
  readonly sentMs: number;
  /** When ingress answered: by then it was decided about. */
  readonly answeredMs: number;
  readonly routed: boolean;
}

export interface Arrival {
  readonly id: string;
  /** The time at which the event was sent to ingress, or undefined if it is not known. */
  readonly sentMs: number | undefined;
  /** When the attempt had arrived. */
  readonly atMs: number;
}

export interface Verdict {
  /** A line each; empty when every answer was kept to. */
  readonly violations: readonly string[];
  /** The number of checks performed on the responses because a history without any changes does not prove anything. */
  readonly judged: {
    readonly openings: number;
    readonly closings: number;
    /** Events that were accepted and decided about while the lever was surely open; surely closed. */
    readonly whileOpen: number;
    readonly whileClosed: number;
    /** Closings that lasted longer than attempts may go on. */
    readonly longClosings: number;
  };
}

/**
 * Holds what happened against what was answered: after a closing nothing is routed and no attempt is claimed; what is
 * accepted after an opening is routed.
 *
 * @param allowedMs after a closing's answer, as long as an attempt may arrive that was claimed before it
 */
export function judgeBarriers(histories: readonly History[], allowedMs: number): Verdict {
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
    /** The change that was applied during the whole period between two times, or undefined if this is not certain. */
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
      const afterMs = atMs - turn.answeredMs;
      if (afterMs > allowedMs) blame(`${id} was attempted ${Math.round(afterMs)} ms after the answer of a closing`);
      else if (sentMs !== undefined && sentMs > turn.answeredMs) {
        blame(`${id} was attempted although it came after the answer of a closing`);
      }
    }
  }
  return { violations, judged };
}

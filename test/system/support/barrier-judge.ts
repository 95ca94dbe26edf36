/**
 * What happened around one lever: an activation's pair, or a Block. It is turned by one hand, alternately, and begins
 * open. All times are ms of one clock.
 */
export interface History {
  readonly lever: string;
  readonly changes: readonly Change[];
  /** Events that this lever alone decided about, and what became of them. */
  readonly decisions: readonly Decision[];
  /** Attempts at an endpoint behind the lever. */
  readonly arrivals: readonly Arrival[];
}

export interface Change {
  readonly to: 'open' | 'closed';
  /** When it was requested: it is not applied before this. */
  readonly askedMs: number;
  /** When the condition showed it as applied. */
  readonly answeredMs: number;
  /** Of a closing: what was routed behind the lever between a look after the answer and one before the next opening. */
  readonly routed?: readonly string[];
}

export interface Decision {
  readonly id: string;
  /** When it was handed to ingress: not before this it was accepted. */
  readonly sentMs: number;
  /** When ingress answered: by then it was decided about. */
  readonly answeredMs: number;
  readonly routed: boolean;
}

export interface Arrival {
  readonly id: string;
  /** When the event was handed to ingress; undefined where that is not known. */
  readonly sentMs: number | undefined;
  /** When the attempt had arrived. */
  readonly atMs: number;
}

export interface Verdict {
  /** A line each; empty when every answer was kept to. */
  readonly violations: readonly string[];
  /** How much the answers were held against; nothing is proven by a history in which nothing happened. */
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
    /** The turn that was applied all the time between two moments; undefined when none surely was. */
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

import { giveBack, releaseDue } from './exchange.ts';
import { type Message, WAITING } from './ingest.ts';
import { endClaim, letIdle, letWait, record } from './lanes.ts';
import { type Claim, type Context, DEAD, type Draft, entryOf, MOST_LAPSES, type Part } from './part.ts';

export interface EvictCall {
  readonly step: 'evict';
  readonly dispatcher: string;
}

export interface EvictReply {
  readonly claims: readonly { readonly lane: string; readonly ref: number }[];
}

export interface MineCall {
  readonly step: 'mine';
  readonly by: string;
  /**
   * The number of this call, like the number of an exchange. Earlier calls that are still in progress are refused from
   * here on.
   */
  readonly call: number;
}

export interface MineReply {
  readonly claims: readonly { readonly lane: string; readonly ref: number; readonly mark: number }[];
  readonly pushed: number;
}

export interface SweepCall {
  readonly step: 'sweep';
}

export interface GrantCall {
  readonly step: 'grant';
  /** The total amount granted so far. */
  readonly total: number;
}

/**
 * Returns whether the dispatcher of a claim has not written anything for this time, neither before the claim nor since.
 */
export function hasLapsed(part: Part, { by, at }: Claim, { now, defect }: Context): boolean {
  if (defect === 'evict asks no time') return true;
  return now - Math.max(part.ready[by]?.renewed ?? 0, at) >= DEAD;
}

/** Takes the expired claims of a dispatcher and stops pushing to it. Later claims are left for the next check. */
export function evict(part: Draft, { dispatcher }: EvictCall, context: Context): [EvictReply, (Message | undefined)?] {
  const out: { lane: string; ref: number }[] = [];
  const known = part.ready[dispatcher];
  if (known !== undefined && context.now - known.renewed >= DEAD) {
    // It is not removed, because the number of its last call is used to reject a call that is still in progress.
    part.ready[dispatcher] = { ...known, until: 0 };
  }
  for (const lane of Object.keys(part.claims).sort()) {
    const held = part.claims[lane] as Claim;
    if (held.by !== dispatcher || !hasLapsed(part, held, context)) continue;
    out.push({ lane, ref: held.ref });
    const entry = entryOf(lane, held.ref);
    const { attempts, lapses } = part.tries[entry] ?? { attempts: 0, lapses: 0 };
    if (part.records[entry] === undefined && context.defect !== 'evict counts no lapse') {
      part.tries[entry] = { attempts, lapses: lapses + 1 };
    }
    if (part.records[entry] === undefined && lapses + 1 >= MOST_LAPSES && context.defect !== 'evict counts no lapse') {
      record(part, lane, held.ref, 'dead');
      endClaim(part, lane, held, context);
      if (part.pend[lane] === undefined) letIdle(part, lane);
      else letWait(part, lane, context.now);
    } else giveBack(part, lane, held, 0, context);
  }
  return [{ claims: out }, out.length > 0 ? WAITING : undefined];
}

/** Lists the claims of a dispatcher that may have missed some of them. */
export function mine(part: Draft, { by, call }: MineCall, { now }: Context): [MineReply] {
  const known = part.ready[by];
  const claims = Object.keys(part.claims)
    .sort()
    .flatMap(lane => {
      const { ref, mark, by: holder } = part.claims[lane] as Claim;
      return holder === by ? [{ lane, ref, mark }] : [];
    });
  // A dispatcher that has never written anything is recorded as well, because its first exchange may be in progress.
  const none = { renewed: now, until: 0, limit: 0, held: claims.length, pushed: 0 };
  part.ready[by] = known === undefined ? { ...none, call } : { ...known, call: Math.max(known.call, call) };
  return [{ claims, pushed: known?.pushed ?? 0 }];
}

/** Makes lanes with due retries wait. */
export function sweep(part: Draft, _call: SweepCall, context: Context): [null, (Message | undefined)?] {
  return [null, releaseDue(part, context) ? WAITING : undefined];
}

/** Raises the limit for charges. Repeated or late calls have no effect. */
export function grant(part: Draft, { total }: GrantCall): [null, (Message | undefined)?] {
  const granted = Math.max(part.meta.granted, total);
  const raised = granted > part.meta.granted;
  part.meta = { ...part.meta, granted };
  return [null, raised && part.meta.hold !== '' ? WAITING : undefined];
}

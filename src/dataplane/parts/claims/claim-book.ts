import type { Completion } from '../../../part/claims/exchange.ts';
import { isAlone } from '../../../part/claims/message.ts';
import type { HeldClaim } from './held-claim.ts';

/** The number of completions that are written immediately, even if nothing waits for them. */
const ENOUGH = 32;
/** The map of claims is renewed at least after this number of claims. */
const RENEW_AFTER = 128;

interface Ended {
  readonly completion: Completion;
  /** Something waits for it to be written. */
  readonly urgent: boolean;
}

/**
 * The claims that this process has in a part, from when they have been read until their completion has been recorded in
 * Redis.
 */
export interface ClaimBook {
  /**
   * Records a new claim. Returns true if it can be sent now. An event can't be sent while an attempt is in progress for
   * an earlier claim of the same lane, which another dispatcher has taken over.
   */
  readonly take: (held: HeldClaim) => boolean;
  /** Ends a claim. Returns the next claim of its lane that can be sent now. */
  readonly end: (held: HeldClaim, completion: Completion) => HeldClaim | undefined;
  /** Gives back a claim which was never read. */
  readonly giveBack: (lane: string, ref: string) => void;
  /**
   * Returns a function that returns whether a claim is in the book. The returned function doesn't notice later changes.
   */
  readonly lookUp: () => (lane: string, ref: string) => boolean;
  /**
   * Records that there are more events waiting in a lane. Returns whether there is a completion for it that has not
   * been written yet.
   */
  readonly markBehind: (lane: string) => boolean;
  /**
   * Returns the completions that should be sent in the next exchange, but at most this many. The completions are in
   * progress until `written` or `notWritten` is called.
   */
  readonly startWriting: (most: number) => readonly Completion[];
  readonly written: () => number;
  readonly notWritten: () => void;
  /** The number of claims for which the end has not been recorded in Redis yet. */
  readonly count: () => number;
  /** Returns true if one of the claims is for an event that is claimed alone. In this case, no other one is claimed. */
  readonly holdsAlone: () => boolean;
  /** Returns the completions that need to be written: none, some, or some with events that wait for them. */
  readonly toWrite: () => 'none' | 'some' | 'urgent';
  readonly clear: () => number;
}

export function createClaimBook(): ClaimBook {
  let held = new Map<string, HeldClaim>();
  let added = 0;
  let ended: Ended[] = [];
  let writing: readonly Ended[] = [];
  let urgent = false;
  /** The claims that have to wait for a claim which was taken over by another dispatcher. */
  let followers = 0;
  let alone = 0;

  /**
   * Whenever V8 replaces the table of a map, the old table refers to the new one, and to all entries it had. If the old
   * one is among the old objects of the heap, every later table and claim survives all collections of young objects.
   * Collections of young objects then take ten times as long. A new map is not known to older tables.
   */
  function hold(claim: HeldClaim): void {
    if (++added > Math.max(RENEW_AFTER, held.size)) {
      held = new Map(held);
      added = 0;
    }
    held.set(claim.claim.lane, claim);
  }

  function push(completion: Completion, isUrgent: boolean): void {
    ended.push({ completion, urgent: isUrgent });
    urgent ||= isUrgent;
  }

  const count = () => held.size + followers + ended.length + writing.length;

  return {
    take(claim) {
      const before = held.get(claim.claim.lane);
      if (before === undefined) {
        if (isAlone(claim.claim)) alone++;
        hold(claim);
        return true;
      }
      if (before.claim.ref === claim.claim.ref) {
        // The same event was claimed again. The result is used for the new claim.
        before.atMs = claim.atMs;
        before.behind = claim.behind;
        return false;
      }
      if (before.next === undefined) followers++;
      before.next = claim;
      return false;
    },
    end(claim, completion) {
      const { lane } = claim.claim;
      if (isAlone(claim.claim)) alone--;
      push(completion, claim.behind || completion.outcome === 'released');
      const { next } = claim;
      if (next === undefined) {
        held.delete(lane);
        return undefined;
      }
      followers--;
      if (isAlone(next.claim)) alone++;
      hold(next);
      return next;
    },
    giveBack: (lane, ref) => push({ lane, ref, outcome: 'released', reason: 'released' }, true),
    lookUp() {
      const known = new Set([...ended, ...writing].map(({ completion: { lane, ref } }) => `${ref} ${lane}`));
      return (lane, ref) => {
        const claim = held.get(lane);
        return claim?.claim.ref === ref || claim?.next?.claim.ref === ref || known.has(`${ref} ${lane}`);
      };
    },
    markBehind(lane) {
      const claim = held.get(lane);
      if (claim !== undefined) {
        (claim.next ?? claim).behind = true;
        return false;
      }
      const isEnded = ended.some(({ completion }) => completion.lane === lane);
      urgent ||= isEnded;
      return isEnded;
    },
    startWriting(most) {
      writing = ended.slice(0, most);
      ended = ended.slice(most);
      urgent = ended.some(each => each.urgent);
      return writing.map(({ completion }) => completion);
    },
    written() {
      const { length } = writing;
      writing = [];
      return length;
    },
    notWritten() {
      ended = [...writing, ...ended];
      writing = [];
      urgent ||= ended.length > 0;
    },
    count,
    holdsAlone: () => alone > 0,
    toWrite: () => (ended.length === 0 ? 'none' : urgent || ended.length >= ENOUGH ? 'urgent' : 'some'),
    clear() {
      const all = count();
      held.clear();
      ended = [];
      writing = [];
      urgent = false;
      followers = 0;
      alone = 0;
      return all;
    },
  };
}

import type { ScriptClient } from '../call.ts';
import { type Part, REMOVED } from '../keys.ts';
import { createLedgerCalls, type PartCounts, type Terms } from './ledger-calls.ts';
import { createRecall } from './recall.ts';

/** The maximum number of calls for each settlement. Each call returns the tokens of parts that are idle. */
const MOST_RECALLS = 16;
/** If a part has a limit, it requests additional tokens before it has used all of them. */
const LOW_TOKENS = 100;

/** The values read from a part before its tokens were settled. */
interface Read {
  /** Empty if there is no account. */
  readonly payer: string;
  readonly counts: PartCounts;
  /** The tokens that were charged to its ledger. */
  readonly used: number;
  /** True if the account has a limit and has used almost all of its tokens. */
  readonly isLow: boolean;
}

export type Settlement =
  | (Read & {
      readonly answer: 'OK';
      /** The part did not have enough tokens before, but it does now. */
      readonly cleared: boolean;
      /** An event waited for tokens. Whoever advances the part finds out whether these are enough. */
      readonly waited: boolean;
    })
  /**
   * SHORT: an event is waiting, but its account has no tokens left. CLOSED: the account plan is
   * not known.
   */
  | (Read & { readonly answer: 'SHORT' | 'CLOSED' })
  | { readonly answer: 'GONE' };

export interface Tokens {
  /**
   * Charges all events that have been routed by a part to its account. If the part needs more tokens, it grants them.
   * You can safely repeat any step: nothing is counted or granted twice.
   */
  readonly settle: (part: Part, nowMs: number) => Promise<Settlement>;
  /** Returns the tokens that a part has left to its account. */
  readonly recall: (part: Part, nowMs: number) => Promise<void>;
  /** The same for up to 64 parts of an account that have some left. @throws if none of them responds */
  readonly recallAll: (account: string, nowMs: number) => Promise<void>;
  /** Charges all events that have been routed by a part for the last time, before the part is removed. */
  readonly close: (part: Part, nowMs: number) => Promise<void>;
  /**
   * Charges the ledgers of a part that has been removed, and notes their end. Returns whether there were any.
   */
  readonly endRemoved: (part: Part, nowMs: number) => Promise<boolean>;
}

export function createTokens(redis: ScriptClient): Tokens {
  const calls = createLedgerCalls(redis);
  const { reportToAccount, apply, forget, forgetDue, readHolders } = calls;
  const { settleAllEnded, recall, recallFrom } = createRecall(calls);

  async function settleNow(part: Part, nowMs: number): Promise<Settlement> {
    let recalls = 0;
    const silent = new Set<string>();
    const terms: Terms = new Map();
    for (;;) {
      const reported = await settleAllEnded(part, nowMs, terms);
      if (reported === undefined) return { answer: 'GONE' };
      const { payer, plan, left, total, counts } = reported;
      const waited = reported.need > 0;
      const isLow = left !== '' && reported.need === 0 && Number(left) < LOW_TOKENS && total !== '0';
      const read = { payer, counts, used: Number(total), isLow };
      if (payer === '')
        return waited ? { answer: 'CLOSED', ...read } : { answer: 'OK', ...read, cleared: false, waited };
      // Redis keeps the balance of a deleted account, but its tokens must not be used.
      const hasPlan = plan !== '';
      const need = isLow ? Number(left) + 1 : reported.need;
      const asked = { ...reported, need: hasPlan ? need : 0, waits: !isLow };
      const [word, ...rest] = await reportToAccount(payer, part, nowMs, asked, terms);
      if (word === 'NEW') continue;
      if (!hasPlan && waited) return { answer: 'CLOSED', ...read };
      if (word === 'OK') {
        const [given, cleared] = rest;
        if (hasPlan && left !== '' && String(given) !== reported.given)
          await apply(part, reported.ledger, String(given));
        return { answer: 'OK', ...read, cleared: cleared === 1, waited };
      }
      // The part has enough tokens for now.
      if (isLow) return { answer: 'OK', ...read, cleared: false, waited };
      const holders = word === 'BUSY' ? (rest as string[]).filter(name => !silent.has(name)) : [];
      if (holders.length === 0 || recalls++ === MOST_RECALLS) {
        return { answer: word === 'CLOSED' ? word : 'SHORT', ...read };
      }
      for (const name of await recallFrom(payer, holders, nowMs)) silent.add(name);
    }
  }

  return {
    recall,

    async settle(part, nowMs) {
      const settlement = await settleNow(part, nowMs);
      await forgetDue();
      return settlement;
    },

    async recallAll(account, nowMs) {
      await recallFrom(account, await readHolders(account), nowMs);
    },

    async close(part, nowMs) {
      const terms: Terms = new Map();
      for (;;) {
        const reported = await settleAllEnded(part, nowMs, terms);
        if (reported === undefined || reported.payer === '') return;
        const [word] = await reportToAccount(reported.payer, part, nowMs, { ...reported, need: -1 }, terms);
        if (word === 'NEW') continue;
        return void (await forget(reported.payer, part));
      }
    },

    async endRemoved(part, nowMs) {
      const reported = await settleAllEnded({ ...part, gen: REMOVED }, nowMs);
      await forgetDue();
      return reported !== undefined && reported.owed + reported.ended !== '';
    },
  };
}

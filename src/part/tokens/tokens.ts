import type { ScriptClient } from '../call.ts';
import type { Part } from '../keys.ts';
import { createLedgerCalls, type Report } from './ledger-calls.ts';
import { parsePartName } from './part-name.ts';

/** The maximum number of calls for each settlement. Each call returns the tokens of parts that are idle. */
const MOST_RECALLS = 16;
/** If a part has a limit, it requests additional tokens before it has used all of them. */
const LOW_TOKENS = 100;

export type Settlement =
  | {
      readonly answer: 'OK';
      readonly payer: string;
      /** The part did not have enough tokens before, but it does now. */
      readonly cleared: boolean;
      /** An event waited for tokens. Whoever advances the part finds out whether these are enough. */
      readonly waited: boolean;
    }
  /**
   * SHORT: there is an event waiting, and there are no tokens left in its account. CLOSED: the account plan is
   * not known.
   */
  | { readonly answer: 'SHORT' | 'CLOSED'; readonly payer: string }
  | { readonly answer: 'GONE' };

export interface Tokens {
  /**
   * Charges all events that have been routed by a part to its account. If more tokens are needed, they are granted.
   * Each of the steps can be repeated, and nothing is counted or granted twice.
   */
  readonly settle: (part: Part, nowMs: number) => Promise<Settlement>;
  /** Returns the tokens that a part has left to its account. */
  readonly recall: (part: Part, nowMs: number) => Promise<void>;
  /** This is the same for up to 64 parts of an account. It is used if a part needs more tokens than there are. */
  readonly recallAll: (account: string, nowMs: number) => Promise<void>;
  /** Charges all events that have been routed by a part for the last time, before the part is removed. */
  readonly close: (part: Part, nowMs: number) => Promise<void>;
}

export function createTokens(redis: ScriptClient): Tokens {
  const { report, tellAccount, settleOwed, apply, giveBack, forget, readHolders } = createLedgerCalls(redis);

  async function recall(part: Part, nowMs: number): Promise<void> {
    for (;;) {
      await giveBack(part);
      const said = await report(part);
      if (said === undefined || said.payer === '') return;
      await settleOwed(part, said.owed, nowMs);
      const [, given] = await tellAccount(said.payer, part, nowMs, { ...said, need: 0 });
      // The process that has requested more tokens may have stopped before the part received them.
      if (said.left === '' || String(given) === said.given) return;
      await apply(part, said.ledger, String(given));
    }
  }

  /** Returns tokens from all parts that have some. If a part was removed, it can't have any tokens. */
  async function recallFrom(account: string, names: readonly string[], nowMs: number): Promise<void> {
    for (const name of names) {
      const holder = parsePartName(name);
      const said = await report(holder);
      if (said !== undefined && said.payer === account) await recall(holder, nowMs);
      else await releaseHold(account, holder, said, nowMs);
    }
  }

  /** The part was removed, or it has a different payer. No granted tokens remain. */
  async function releaseHold(account: string, part: Part, said: Report | undefined, nowMs: number): Promise<void> {
    if (said !== undefined) await settleOwed(part, said.owed, nowMs);
    await forget(account, part);
  }

  async function settle(part: Part, nowMs: number): Promise<Settlement> {
    let recalls = 0;
    for (;;) {
      const said = await report(part);
      if (said === undefined) return { answer: 'GONE' };
      await settleOwed(part, said.owed, nowMs);
      const { payer, left } = said;
      const waited = said.need > 0;
      if (payer === '') return waited ? { answer: 'CLOSED', payer } : { answer: 'OK', payer, cleared: false, waited };
      const isLow = left !== '' && said.need === 0 && Number(left) < LOW_TOKENS && said.total !== '0';
      const need = isLow ? Number(left) + 1 : said.need;
      const [word, ...rest] = await tellAccount(payer, part, nowMs, { ...said, need, waits: !isLow });
      if (word === 'OK') {
        const [given, cleared] = rest;
        if (left !== '' && String(given) !== said.given) await apply(part, said.ledger, String(given));
        return { answer: 'OK', payer, cleared: cleared === 1, waited };
      }
      // It has enough for now.
      if (isLow) return { answer: 'OK', payer, cleared: false, waited };
      if (word !== 'BUSY' || recalls++ === MOST_RECALLS) return { answer: word === 'CLOSED' ? word : 'SHORT', payer };
      await recallFrom(payer, rest as string[], nowMs);
    }
  }

  return {
    recall,

    settle,

    async recallAll(account, nowMs) {
      await recallFrom(account, await readHolders(account), nowMs);
    },

    async close(part, nowMs) {
      const said = await report(part);
      if (said === undefined) return;
      await settleOwed(part, said.owed, nowMs);
      if (said.payer === '') return;
      await tellAccount(said.payer, part, nowMs, { ...said, need: -1 });
      await forget(said.payer, part);
    },
  };
}

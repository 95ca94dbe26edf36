import type { ScriptClient } from '../call.ts';
import type { Part } from '../keys.ts';
import { createLedgerCalls, type Report } from './ledger-calls.ts';
import { parsePartName } from './part-name.ts';

/** Maximum number of calls per settlement. Each call returns tokens of idle parts. */
const MOST_RECALLS = 16;
/** A part with a limit requests more tokens before it runs out. */
const LOW_TOKENS = 100;

export type Settlement =
  | {
      readonly answer: 'OK';
      readonly payer: string;
      /** The part was short of tokens before, and is not any more. */
      readonly cleared: boolean;
      /** An event waited for tokens. Whoever advances the part finds out whether these are enough. */
      readonly waited: boolean;
    }
  /** SHORT: an event is waiting and its account has no tokens left. CLOSED: the plan of the account is unknown. */
  | { readonly answer: 'SHORT' | 'CLOSED'; readonly payer: string }
  | { readonly answer: 'GONE' };

export interface Tokens {
  /**
   * Charges the routed events of a part to its account and grants more tokens if needed. Each step can be repeated
   * without counting or granting anything twice.
   */
  readonly settle: (part: Part, nowMs: number) => Promise<Settlement>;
  /** Returns the remaining tokens of a part to its account. */
  readonly recall: (part: Part, nowMs: number) => Promise<void>;
  /** The same for up to 64 parts of an account, if a part needs more tokens than are free. */
  readonly recallAll: (account: string, nowMs: number) => Promise<void>;
  /** Charges the routed events of a part for the last time, before it is removed. */
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
      // Whoever asked for more may have died before the part had it.
      if (said.left === '' || String(given) === said.given) return;
      await apply(part, said.ledger, String(given));
    }
  }

  /** Returns tokens from parts that hold some. Removed parts can't hold any. */
  async function recallFrom(account: string, names: readonly string[], nowMs: number): Promise<void> {
    for (const name of names) {
      const holder = parsePartName(name);
      const said = await report(holder);
      if (said !== undefined && said.payer === account) await recall(holder, nowMs);
      else await releaseHold(account, holder, said, nowMs);
    }
  }

  /** The part was removed or has another payer. No granted tokens remain. */
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

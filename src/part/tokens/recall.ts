import { tryEach } from '../../time/try-each.ts';
import type { Part } from '../keys.ts';
import type { LedgerCalls, Report, Terms } from './ledger-calls.ts';
import { parsePartName } from './part-name.ts';

/** The time to wait for a part that should return its tokens. */
const HOLDER_MS = 1_000;

/** Takes tokens back from parts that have some left. */
export function createRecall({ report, reportToAccount, settleEnded, apply, giveBack, forget }: LedgerCalls) {
  /** Settles the ledgers of a part that have ended. Returns its report, or undefined if it was removed. */
  async function settleAllEnded(part: Part, nowMs: number, terms: Terms = new Map()): Promise<Report | undefined> {
    for (;;) {
      const reported = await report(part);
      if (reported === undefined || (await settleEnded(part, reported, nowMs, terms))) return reported;
    }
  }

  async function recall(part: Part, nowMs: number): Promise<void> {
    const terms: Terms = new Map();
    for (;;) {
      await giveBack(part);
      const reported = await settleAllEnded(part, nowMs, terms);
      if (reported === undefined || reported.payer === '') return;
      const [word, given] = await reportToAccount(reported.payer, part, nowMs, { ...reported, need: 0 }, terms);
      if (word === 'NEW') continue;
      // The process that has requested more tokens may have stopped before the part received them.
      if (reported.left === '' || reported.plan === '' || String(given) === reported.given) return;
      await apply(part, reported.ledger, String(given));
    }
  }

  async function recallHolder(account: string, name: string, nowMs: number): Promise<void> {
    const holder = parsePartName(name);
    const reported = await report(holder);
    if (reported !== undefined && reported.payer === account) await recall(holder, nowMs);
    else await releaseHold(account, holder, reported, nowMs);
  }

  /**
   * Returns tokens from all parts that have some. If a part was removed, it can't have any tokens. Parts on a Redis
   * master that doesn't reply don't affect the others.
   *
   * @returns the parts that did not reply in time
   * @throws the first error if none of them did
   */
  function recallFrom(account: string, names: readonly string[], nowMs: number): Promise<readonly string[]> {
    return tryEach(names, HOLDER_MS, name => recallHolder(account, name, nowMs));
  }

  /** The part was removed, or it has a different payer. No granted tokens remain. */
  async function releaseHold(account: string, part: Part, reported: Report | undefined, nowMs: number): Promise<void> {
    if (reported !== undefined) await settleAllEnded(part, nowMs);
    await forget(account, part);
  }

  return { settleAllEnded, recall, recallFrom };
}

import { accountKeys } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';
import { createForgetting } from './ended/forget-ended.ts';
import { partName } from './part-name.ts';

const script = (name: string) => readNamedScript(new URL(`${name}.lua`, import.meta.url));
const REPORT = script('report');
const SETTLE_OWED = script('settle-owed');
const APPLY = script('apply');
const GIVE_BACK = script('give-back');
const ACCOUNT_GRANT = script('account-grant');
const ACCOUNT_FORGET = script('account-forget');
const ACCOUNT_END_LEDGER = script('ended/account-end-ledger');
const ACCOUNT_HOLDERS = script('account-holders');

/** The counts of a part that are not tokens. */
export interface PartCounts {
  /** `in` and `out` of its meta hash (`lib/traffic.lua`), or ''. */
  readonly traffic: readonly [arrived: string, ended: string];
  /** The number of stored bytes. */
  readonly bytes: number;
}

/** A part's tokens, as they were reported by the part. */
export interface Report {
  readonly payer: string;
  /** If the account does not exist, this is ''. */
  readonly plan: string;
  readonly ledger: string;
  readonly total: string;
  readonly given: string;
  /** If there is no bound, this is ''. */
  readonly left: string;
  readonly need: number;
  /** Ledgers which have ended: `account generation ledger total;` each. */
  readonly owed: string;
  /** Ledgers which have been counted, but whose end has not been noted: `account generation ledger;` each. */
  readonly ended: string;
  readonly counts: PartCounts;
}

/** A report that a part sends to its account. If there is an event waiting for tokens, `waits` is set. */
type Asked = Omit<Report, 'payer' | 'plan' | 'owed' | 'ended' | 'counts'> & { readonly waits?: boolean };

type Granted = readonly [word: 'OK' | 'BUSY' | 'SHORT' | 'CLOSED' | 'NEW', ...rest: (string | number)[]];

/** Account → its term, as returned for a ledger that it does not know, or that has ended. */
export type Terms = Map<string, string>;

const entriesOf = (text: string) =>
  text
    .split(';')
    .slice(0, -1)
    .map(entry => entry.split(' '));

function parseReport(values: readonly string[]): Report {
  const [payer = '', plan = '', ledger = '', total = '', given = '', left = '', need, ...others] = values;
  const [owed = '', ended = '', arrived = '', out = '', bytes] = others;
  const counts: PartCounts = { traffic: [arrived, out], bytes: Number(bytes) };
  return { payer, plan, ledger, total, given, left, need: Number(need), owed, ended, counts };
}

export type LedgerCalls = ReturnType<typeof createLedgerCalls>;

/** The steps between a part and its account. Each of them is a single script, and can be repeated. */
export function createLedgerCalls(redis: ScriptClient) {
  const callPart = (named: typeof REPORT, part: Part, args: Record<string, string> = {}) =>
    callScript(redis, named, { keys: partKeys(part), args: { gen: part.gen, ...args } });

  const forgetting = createForgetting(redis);

  async function report(part: Part): Promise<Report | undefined> {
    const [word, ...rest] = await callPart(REPORT, part);
    if (word !== 'OK') return undefined;
    return parseReport(rest as string[]);
  }

  /**
   * Reports the tokens of a part to its account. If the response is NEW, nothing was counted, because the account does
   * not know the ledger, or it has ended. You need to read the report again, and repeat this with the same terms.
   */
  async function reportToAccount(account: string, part: Part, nowMs: number, of: Asked, terms: Terms = new Map()) {
    const { ledger, total, given, left, need, waits = need > 0 } = of;
    const queue = `${part.tenant}:${part.queue}`;
    const term = terms.get(account) ?? '';
    const args = { part: partName(part), queue, ledger, total, given, left, need, waits: waits ? 1 : 0, nowMs, term };
    const granted = await callScript(redis, ACCOUNT_GRANT, { keys: accountKeys(account), args });
    const [word, first, ...rest] = granted as unknown as Granted;
    if (word === 'NEW') {
      terms.set(account, first as string);
      return [word, first] as const;
    }
    forgetting.noteDue(account, first);
    return [word, ...rest] as const;
  }

  /** Removes ledgers from a part after they were counted, or their end was noted. Returns those with an end to note. */
  async function settleOwed(part: Part, counted: string, noted: string): Promise<string> {
    const [word, ended] = await callPart(SETTLE_OWED, part, { counted, noted });
    return word === 'OK' ? (ended as string) : '';
  }

  /**
   * Charges ledgers that have ended to their accounts, notes their end there, and removes them from the part. Returns
   * false if the report has to be read again first.
   */
  async function settleEnded(part: Part, { owed, ended }: Report, nowMs: number, terms: Terms): Promise<boolean> {
    if (owed === '' && ended === '') return true;
    for (const [account = '', gen = '', ledger = '', total = ''] of entriesOf(owed)) {
      const of = { ledger, total, given: '0', left: '', need: -1 };
      const [word] = await reportToAccount(account, { ...part, gen }, nowMs, of, terms);
      if (word === 'NEW') return false;
    }
    // Only those that the part can't report any more, even if another process is doing the same.
    const toNote = owed === '' ? ended : await settleOwed(part, owed, '');
    for (const [account = '', gen = '', ledger = ''] of entriesOf(toNote)) {
      const args = { part: partName({ ...part, gen }), ledger };
      const [, isDue] = await callScript(redis, ACCOUNT_END_LEDGER, { keys: accountKeys(account), args });
      forgetting.noteDue(account, isDue);
    }
    if (toNote !== '') await settleOwed(part, '', toNote);
    return true;
  }

  return {
    /** If the part was removed, this is undefined. */
    report,
    reportToAccount,
    settleEnded,
    forgetDue: () => forgetting.forgetDue(),
    apply: (part: Part, ledger: string, given: string) => callPart(APPLY, part, { ledger, given }),
    giveBack: (part: Part) => callPart(GIVE_BACK, part),
    forget: (account: string, part: Part) =>
      callScript(redis, ACCOUNT_FORGET, { keys: accountKeys(account), args: { part: partName(part) } }),
    readHolders: async (account: string): Promise<readonly string[]> => {
      const [, ...names] = await callScript(redis, ACCOUNT_HOLDERS, { keys: accountKeys(account), args: {} });
      return names as string[];
    },
  };
}

import { accountKeys } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';
import { partName } from './part-name.ts';

const script = (name: string) => readNamedScript(new URL(`${name}.lua`, import.meta.url));
const REPORT = script('report');
const SETTLE_OWED = script('settle-owed');
const APPLY = script('apply');
const GIVE_BACK = script('give-back');
const ACCOUNT_GRANT = script('account-grant');
const ACCOUNT_FORGET = script('account-forget');
const ACCOUNT_HOLDERS = script('account-holders');

/** The tokens of a part, as they were reported by the part. */
export interface Report {
  readonly payer: string;
  readonly ledger: string;
  readonly total: string;
  readonly given: string;
  /** If there is no bound, this is ''. */
  readonly left: string;
  readonly need: number;
  /** Ledgers which have ended: `account generation ledger total;` each. */
  readonly owed: string;
}

/** A report that a part sends to its account. If there is an event waiting for tokens, `waits` is set. */
type Asked = Omit<Report, 'payer' | 'owed'> & { readonly waits?: boolean };

type Granted = readonly [word: 'OK' | 'BUSY' | 'SHORT' | 'CLOSED', ...rest: (string | number)[]];

/** The steps between a part and its account. Each of them is a single script, and can be repeated. */
export function createLedgerCalls(redis: ScriptClient) {
  const callPart = (named: typeof REPORT, part: Part, args: Record<string, string> = {}) =>
    callScript(redis, named, { keys: partKeys(part), args: { gen: part.gen, ...args } });

  async function report(part: Part): Promise<Report | undefined> {
    const [word, ...rest] = await callPart(REPORT, part);
    if (word !== 'OK') return undefined;
    const [payer = '', , ledger = '', total = '', given = '', left = '', need, owed = ''] = rest as string[];
    return { payer, ledger, total, given, left, need: Number(need), owed };
  }

  async function tellAccount(account: string, part: Part, nowMs: number, of: Asked) {
    const { ledger, total, given, left, need, waits = need > 0 } = of;
    const queue = `${part.tenant}:${part.queue}`;
    const args = { part: partName(part), queue, ledger, total, given, left, need, waits: waits ? 1 : 0, nowMs };
    return (await callScript(redis, ACCOUNT_GRANT, { keys: accountKeys(account), args })) as unknown as Granted;
  }

  /** Charges ledgers that have ended to their accounts, and then removes them. */
  async function settleOwed(part: Part, owed: string, nowMs: number): Promise<void> {
    for (const entry of owed.split(';').slice(0, -1)) {
      const [account = '', gen = '', ledger = '', total = ''] = entry.split(' ');
      await tellAccount(account, { ...part, gen }, nowMs, { ledger, total, given: '0', left: '', need: -1 });
    }
    if (owed !== '') await callPart(SETTLE_OWED, part, { counted: owed });
  }

  return {
    /** If the part was removed, this is undefined. */
    report,
    tellAccount,
    settleOwed,
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

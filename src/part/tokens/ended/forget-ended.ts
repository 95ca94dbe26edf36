import { accountKeys } from '../../../redis/keys.ts';
import { readNamedScript } from '../../../redis/named-scripts.ts';
import { tryEach } from '../../../time/try-each.ts';
import { callScript, type ScriptClient } from '../../call.ts';
import { partKeys } from '../../keys.ts';
import { parsePartName } from '../part-name.ts';

const script = (name: string) => readNamedScript(new URL(`${name}.lua`, import.meta.url));
const ACCOUNT_DUE_LEDGERS = script('account-due-ledgers');
const ACCOUNT_FORGET_LEDGERS = script('account-forget-ledgers');
const HOLDS_LEDGER = script('holds-ledger');

/** The maximum number of ledgers that are forgotten at once. */
const MOST_AT_ONCE = 64;
/** The time to wait for a part. */
const PART_MS = 1_000;

/**
 * Makes accounts forget ledgers that have ended. If a part fails over, it may have lost the end of a ledger. Since it
 * doesn't report the ledger while it is idle, it is asked first. A ledger is kept if its part has it or doesn't reply.
 *
 * A failover can't bring back a ledger that is forgotten. The part has ended the ledger before the account noted the
 * end. That was a day ago, because otherwise the account would have refused to forget it.
 */
export function createForgetting(redis: ScriptClient) {
  /** Accounts with ledgers that may be forgotten. */
  const due = new Set<string>();

  async function isGone(name: string): Promise<boolean> {
    const at = name.lastIndexOf('.');
    const part = parsePartName(name.slice(0, at));
    const args = { gen: part.gen, ledger: name.slice(at + 1) };
    const [word] = await callScript(redis, HOLDS_LEDGER, { keys: partKeys(part), args });
    return word === 'GONE';
  }

  async function forgetEnded(account: string): Promise<void> {
    const keys = accountKeys(account);
    const listed = await callScript(redis, ACCOUNT_DUE_LEDGERS, { keys, args: { most: MOST_AT_ONCE } });
    const [, time = '', ...names] = listed as readonly string[];
    if (names.length === 0) return;
    const gone = new Set<string>();
    const ask = async (name: string) => void ((await isGone(name)) && gone.add(name));
    // If none of the parts replies, all of the ledgers are kept.
    await tryEach(names, PART_MS, ask).catch(() => names);
    const more = names.flatMap(name => [name, gone.has(name) ? 1 : 0]);
    await callScript(redis, ACCOUNT_FORGET_LEDGERS, { keys, args: { time }, more });
  }

  return {
    /** Notes what an account has returned about its ledgers: 1 if some of them may be forgotten. */
    noteDue(account: string, isDue: unknown): void {
      if (isDue === 1) due.add(account);
    },
    /** Makes the accounts that were noted forget ledgers. If this fails, it is due again a minute later. */
    async forgetDue(): Promise<void> {
      const accounts = [...due];
      due.clear();
      for (const account of accounts) await forgetEnded(account).catch(() => undefined);
    },
  };
}

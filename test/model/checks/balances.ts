import { partName } from '../../../src/part/tokens/part-name.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import { ACCOUNTS, type AccountName, accountId } from '../state/accounts.ts';
import type { Objects } from '../state/objects.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { untoldTokens } from '../state/untold.ts';
import { hold } from '../state/violation.ts';
import type { WorldDump } from '../state/world-dump.ts';

export interface Balance {
  /** Whether the plan limits the tokens. If false, it only counts them. */
  readonly enforced: boolean;
  /** The same, as stored in the parts for which it pays. A paused workspace continues with its previous state. */
  readonly enforcedOnEvents: boolean;
  readonly included: number;
  /** The tokens according to the account. */
  readonly used: number;
  /** Granted tokens which parts have received or can still fetch. */
  readonly granted: number;
  /** Tokens charged by parts, and by replays. */
  readonly spent: number;
  /** Tokens that were used by parts which have been granted more, and have not been counted by the account. */
  readonly uncounted: number;
}

function grantedTo(account: string, dump: WorldDump): number {
  const grants = dump.hashes.get(accountKeys(account).grants) ?? {};
  let granted = 0;
  for (const { meta, part } of dump.parts.values()) {
    if (meta.get('payer') !== account || !meta.has('granted')) continue;
    granted += Math.max(0, Number(meta.get('granted')) - Number(meta.get('used') ?? 0));
    const [ledger, total = '0'] = (grants[partName(part)] ?? '').split(' ');
    if (ledger === meta.get('ledger')) granted += Math.max(0, Number(total) - Number(meta.get('given') ?? 0));
  }
  return granted;
}

/** Checks the balance and usage of accounts, and whether plans are followed (invariants 3, 19). */
export function createBalances(
  objects: Objects,
  tenants: readonly ModelTenant[],
  replayed: (account: string) => number,
) {
  const balances = new Map<string, Balance>();
  /**
   * The maximum number of tokens that can be used. An account that was already short before counting remains unchanged.
   */
  const limits = new Map<string, number>();
  /** Accounts whose change may or may not have been applied, because a controller crashed while applying it. */
  const doubted = new Set<AccountName>();

  function read(account: string, dump: WorldDump): Balance {
    const a = accountKeys(account);
    const { plan = '', included = '', used = '0' } = dump.hashes.get(a.meta) ?? {};
    const paying = tenants.filter(({ payer }) => payer === account);
    const ids = new Set(paying.map(({ id }) => id));
    const parts = [...dump.parts.values()].filter(({ part }) => ids.has(part.tenant));
    const enforced = plan !== 'Metered';
    const hold = dump.hashes.get(a.hold) ?? {};
    const holders = parts.filter(({ part }) => Number(hold[partName(part)] ?? 0) > 0);
    const uncounted = holders.reduce((sum, part) => sum + untoldTokens(part, dump), 0);
    return {
      enforced,
      enforcedOnEvents: enforced && parts.every(({ meta }) => meta.get('plan') !== 'Metered'),
      included: Number(included),
      used: Number(used),
      granted: grantedTo(account, dump),
      spent: paying.reduce((sum, tenant) => sum + tenant.spent(), replayed(account)),
      uncounted,
    };
  }

  function checkPlan(name: AccountName, { enforced, included }: Balance): void {
    const { plan, includedTokens } = objects.accounts().find(({ metadata }) => metadata.name === name)?.spec ?? {};
    const right = enforced === (plan === 'Free') && included === includedTokens;
    hold(3, right, () => `account ${name} is ${plan} with ${includedTokens} tokens, and Redis says ${included}`);
  }

  function check(name: AccountName, dump: WorldDump): void {
    const account = accountId(name);
    const before = balances.get(account);
    const is = read(account, dump);
    balances.set(account, is);
    const paying = tenants.filter(({ payer }) => payer === account);
    const isCertain = !doubted.has(name) && paying.every(tenant => tenant.isCertain());
    if (isCertain) checkPlan(name, is);
    const isSame = before?.enforcedOnEvents === true && before.included === is.included;
    if (!isCertain || !is.enforcedOnEvents || !isSame) {
      // No tokens were reserved for events that were routed without a limit and have not been counted yet.
      const uncounted = Math.max(0, is.spent - is.used);
      limits.set(account, Math.max(is.included + uncounted, is.spent + is.granted));
      return;
    }
    const limit = limits.get(account) ?? 0;
    hold(19, is.spent <= limit, () => `account ${name} has spent ${is.spent} of ${limit} tokens`);
  }

  return {
    check(dump: WorldDump): void {
      for (const name of ACCOUNTS) check(name, dump);
    },
    noteChange(name: AccountName, done: boolean): void {
      if (done) doubted.delete(name);
      else doubted.add(name);
    },
    noteLead: (): void => doubted.clear(),
    of: (account: string): Balance | undefined => balances.get(account),
    /** The number of tokens that a replay can use, including those that parts return for it. */
    leftForReplays(account: string): number {
      const { enforced = true, included = 0, used = 0, uncounted = 0 } = balances.get(account) ?? {};
      return enforced ? included - used - uncounted : Infinity;
    },
    /**
     * Returns the number of tokens for routing if all other parts have returned the tokens that they do not require.
     */
    leftForEvents(account: string): number {
      const { enforcedOnEvents = true, included = 0, spent = 0 } = balances.get(account) ?? {};
      return enforcedOnEvents ? included - spent : Infinity;
    },
  };
}

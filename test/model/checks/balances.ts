import { accountKeys, hintKeys, hintPartition, integrationKeys, tenantKeys } from '../../../src/redis/keys.ts';
import { ACCOUNTS, type AccountName, accountId } from '../state/accounts.ts';
import { integrationId } from '../state/definition.ts';
import type { Objects } from '../state/objects.ts';
import type { RedisDump } from '../state/redis-dump.ts';
import { type ModelTenant, NAMES } from '../state/tenant.ts';
import { hold } from '../state/violation.ts';

export interface Balance {
  /** False: its plan only counts. */
  readonly enforced: boolean;
  /** The same, as the routes of those that it pays for have it: a workspace that is paused goes on as it was. */
  readonly enforcedOnEvents: boolean;
  readonly included: number;
  readonly used: number;
  /** Tokens that batches have set aside. */
  readonly held: number;
  /** Tokens that were charged in the integrations' slots, and that the account does not count yet. */
  readonly unfolded: number;
}

/** What the accounts have and have spent, and that a plan is kept to (invariants 3, 19). */
export type Balances = ReturnType<typeof createBalances>;

/** A hold that is not repeated for so long is released: the charge of its batch is not set aside any more. */
const HOLD_MS = 600_000;

export function createBalances(objects: Objects, tenants: readonly ModelTenant[], nowMs: () => number) {
  const balances = new Map<string, Balance>();
  /** What may be spent at most: an account that was short before it counted stays as it is. */
  const limits = new Map<string, number>();
  /** Accounts whose change may be applied, or not: a controller died at it. */
  const doubted = new Set<AccountName>();
  let diedMs: number | undefined;

  function read(account: string, dump: RedisDump): Balance {
    const a = accountKeys(account);
    const { plan = '', included = '', used = '0' } = dump.hashes.get(a.meta) ?? {};
    const seen = dump.hashes.get(a.seen) ?? {};
    let [held, unfolded] = [0, 0];
    for (const tokens of Object.values(dump.hashes.get(a.hold) ?? {})) held += Number(tokens);
    for (const { name, payer } of tenants) {
      if (payer !== account) continue;
      for (const integration of NAMES.integrations) {
        const id = integrationId(name, integration);
        const ledger = dump.hashes.get(integrationKeys(id).ledger) ?? {};
        unfolded += Number(ledger[account] ?? 0) - Number(seen[`${id}.${ledger.gen}`] ?? 0);
      }
    }
    const enforced = plan !== 'Metered';
    const paying = tenants.filter(({ payer }) => payer === account);
    const routed = paying.every(({ id }) => dump.hashes.get(tenantKeys(id).meta)?.plan !== 'Metered');
    const enforcedOnEvents = enforced && routed;
    return { enforced, enforcedOnEvents, included: Number(included), used: Number(used), held, unfolded };
  }

  function checkPlan(name: AccountName, { enforced, included }: Balance): void {
    const { plan, includedTokens } = objects.accounts().find(({ metadata }) => metadata.name === name)?.spec ?? {};
    const right = enforced === (plan === 'Free') && included === includedTokens;
    hold(3, right, () => `account ${name} is ${plan} with ${includedTokens} tokens, and Redis says ${included}`);
  }

  function check(name: AccountName, dump: RedisDump): void {
    const account = accountId(name);
    const before = balances.get(account);
    const is = read(account, dump);
    balances.set(account, is);
    const spent = is.used + is.unfolded;
    const paying = tenants.filter(({ payer }) => payer === account);
    const isCertain = !doubted.has(name) && paying.every(tenant => tenant.isCertain());
    if (isCertain) checkPlan(name, is);
    if (
      before === undefined ||
      !isCertain ||
      !is.enforcedOnEvents ||
      !before.enforcedOnEvents ||
      before.included !== is.included
    ) {
      limits.set(account, Math.max(is.included, spent));
      return;
    }
    const known = limits.get(account) ?? 0;
    const abandoned = diedMs !== undefined && nowMs() - diedMs >= HOLD_MS ? before.unfolded : 0;
    const limit = known + abandoned;
    const grew = spent > before.used + before.unfolded;
    hold(19, !grew || spent <= limit, () => `account ${name} has spent ${spent} of ${limit} tokens`);
    limits.set(account, Math.max(known, spent));
  }

  return {
    check(dump: RedisDump): void {
      for (const name of ACCOUNTS) check(name, dump);
    },
    noteChange(name: AccountName, done: boolean): void {
      if (done) doubted.delete(name);
      else doubted.add(name);
    },
    noteLead: (): void => doubted.clear(),
    noteRouterDeath: (): void => {
      diedMs = nowMs();
    },
    of: (account: string): Balance | undefined => balances.get(account),
    /** What a replay may spend. */
    leftForReplays(account: string): number {
      const { enforced = true, included = 0, used = 0, held = 0 } = balances.get(account) ?? {};
      return enforced ? included - used - held : Infinity;
    },
    /** What may be routed at its cost. */
    leftForEvents(account: string): number {
      const { enforcedOnEvents = true, included = 0, used = 0, unfolded = 0 } = balances.get(account) ?? {};
      return enforcedOnEvents ? included - used - unfolded : Infinity;
    },
  };
}

/** Subscriptions that wait for tokens are due when an account gets some. */
export function checkWoken(account: AccountName, dump: RedisDump, nowMs: number): void {
  for (const queue of Object.keys(dump.hashes.get(accountKeys(accountId(account)).short) ?? {})) {
    const dueMs = dump.sorted.get(hintKeys('r', hintPartition(queue)).due)?.[queue];
    hold(25, Number(dueMs) <= nowMs, () => `${queue} waits for tokens of ${account}, and is due at ${dueMs}`);
  }
}

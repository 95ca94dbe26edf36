import { publicId } from '../../../core/ids/ids.ts';
import { Gauge, type Registry } from '../../../telemetry/metrics.ts';
import type { LimitUse } from './limit-use.ts';

/** The number of accounts that have series. */
const LARGEST = 10;

type NamedAccount = Parameters<LimitUse['sharesOf']>[0];

/**
 * Registers a metric for the usage of the accounts that are closest to one of their limits. If an account is not one of
 * them any more, its series are removed with the next scrape.
 */
export function registerLimitMetrics(
  registry: Registry,
  limitUse: Pick<LimitUse, 'sharesOf' | 'highestShareOf'>,
  accounts: () => Iterable<NamedAccount>,
): void {
  new Gauge({
    name: 'sluice_controller_account_limit_used_ratio',
    help: 'The number of objects divided by the limit, by limit and public id of the account. Only reported for the ten accounts that are closest to one of their limits. The series of an account end when it is no longer among them. All replicas report the same value. To aggregate, use the maximum.',
    labelNames: ['account', 'limit'] as const,
    registers: [registry],
    collect() {
      this.reset();
      for (const each of closestOf(accounts(), limitUse.highestShareOf)) {
        const account = publicId('Account', '', each.metadata.name);
        for (const [limit, share] of limitUse.sharesOf(each)) this.set({ account, limit }, share);
      }
    },
  });
}

/** Returns the accounts with the highest shares, highest first. Only includes accounts that use a limit. */
function closestOf(accounts: Iterable<NamedAccount>, shareOf: LimitUse['highestShareOf']): readonly NamedAccount[] {
  const closest: { readonly account: NamedAccount; readonly share: number }[] = [];
  for (const account of accounts) {
    const share = shareOf(account);
    if (share <= (closest[LARGEST - 1]?.share ?? 0)) continue;
    const at = closest.findIndex(each => each.share < share);
    closest.splice(at < 0 ? closest.length : at, 0, { account, share });
    closest.length = Math.min(closest.length, LARGEST);
  }
  return closest.map(({ account }) => account);
}

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
  limitUse: Pick<LimitUse, 'sharesOf'>,
  accounts: () => Iterable<NamedAccount>,
): void {
  new Gauge({
    name: 'sluice_controller_account_limit_used_ratio',
    help: 'The number of objects divided by the limit, for the ten accounts that are closest to one of their limits, by public id of the account and limit. The series of an account end when it is no longer among the ten. All replicas report the same value, so be sure to aggregate using the maximum.',
    labelNames: ['account', 'limit'] as const,
    registers: [registry],
    collect() {
      this.reset();
      const used = [...accounts()].map(account => {
        const shares = limitUse.sharesOf(account);
        return {
          account: publicId('Account', '', account.metadata.name),
          shares,
          most: Math.max(0, ...shares.values()),
        };
      });
      const closest = used.filter(({ most }) => most > 0).toSorted((a, b) => b.most - a.most);
      for (const { account, shares } of closest.slice(0, LARGEST)) {
        for (const [limit, share] of shares) this.set({ account, limit }, share);
      }
    },
  });
}

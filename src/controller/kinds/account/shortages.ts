import { Gauge, type Registry } from '../../../telemetry/metrics.ts';
import type { Context } from '../../context/context.ts';

export interface ShortagesDeps {
  readonly registry: Registry;
  readonly exists: (account: string) => boolean;
  /** Returns true if this replica is the leader. */
  readonly leads: () => boolean;
  /**
   * Called when an account is first recorded, and whenever a shortage begins or ends. In the latter case, `turned` will
   * be true.
   */
  readonly onNews: (account: string, turned: boolean) => void;
}

/** Tracks all accounts with streams that are waiting for tokens. Only includes accounts reconciled by this leader. */
export function createShortages({ registry, exists, leads, onNews }: ShortagesDeps): Context['shortages'] {
  const known = new Map<string, boolean>();
  new Gauge({
    name: 'sluice_controller_accounts_short',
    help: 'The number of accounts with queues that are waiting for tokens. Only the leader reports it.',
    registers: [registry],
    collect() {
      for (const account of known.keys()) if (!exists(account)) known.delete(account);
      this.set(leads() ? [...known.values()].filter(Boolean).length : 0);
    },
  });
  return {
    isShort: account => known.get(account),
    note(account, short) {
      const before = known.get(account);
      known.set(account, short);
      if (before !== short) onNews(account, short || before === true);
    },
  };
}

import { Gauge, type Registry } from '../../../telemetry/metrics.ts';
import type { Room } from '../../context/context.ts';

export interface ShortagesDeps {
  readonly registry: Registry;
  readonly exists: (account: string) => boolean;
  /** The first look at an account, and each time that a shortage begins or ends; `turned`: it did. */
  readonly onNews: (account: string, turned: boolean) => void;
}

/** Remembers which accounts have queues that wait for tokens, as far as this leader has looked. */
export function createShortages({ registry, exists, onNews }: ShortagesDeps): Room['shortages'] {
  const known = new Map<string, boolean>();
  new Gauge({
    name: 'sluice_controller_accounts_short',
    help: 'Accounts with queues that wait for tokens. Only the leader reports it.',
    registers: [registry],
    collect() {
      for (const account of known.keys()) if (!exists(account)) known.delete(account);
      this.set([...known.values()].filter(Boolean).length);
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

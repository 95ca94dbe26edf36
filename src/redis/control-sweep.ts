import type { RedisClient } from './client.ts';
import type { ListedPart } from './control-audit.ts';
import { FencedError } from './control-store.ts';
import type { InboxRef } from './inbox-store.ts';
import { inboxContents, inboxKeys, integrationKeys, queueContents, queueKeys, tenantKeys } from './keys.ts';
import { createLedgerStore, ledgerTotal } from './ledger-store.ts';
import type { ScriptName } from './scripts.ts';
import { createTrafficStore, weekOf } from './traffic-store.ts';

/** An inbox, and the stream whose events it is of, where that is known. */
export interface StoredInbox extends InboxRef {
  readonly stream?: { readonly tenant: string; readonly queue: string };
}

/**
 * Removes what no object owns. Each answers whether it may go, or went; false: something still lies in it, or it is not
 * closed. Each looks and removes in one script, and is fenced.
 */
export interface ControlSweep {
  /**
   * A closed queue: when all of it was routed and delivered, or is older than its retention.
   *
   * @param queue with whether inboxes have open references to its events
   * @param look only says whether it may go
   */
  readonly purgeQueue: (
    fence: number,
    queue: { readonly tenant: string; readonly queue: string; readonly gen: string; readonly isOpen: boolean },
    nowMs: number,
    look: boolean,
  ) => Promise<boolean>;
  /** A closed subscription: when its inbox holds nothing that is younger than the retention. */
  readonly purgeInbox: (
    fence: number,
    inbox: StoredInbox,
    nowMs: number,
    retentionMs: number,
    look: boolean,
  ) => Promise<boolean>;
  /**
   * A closed integration without an active group key. What was routed at an account's cost is counted there first, and its
   * traffic in the producer's series.
   */
  readonly purgeIntegration: (fence: number, integration: string, nowMs: number, look: boolean) => Promise<boolean>;
  /** A tenant whose index is empty. */
  readonly purgeTenant: (fence: number, tenant: string, nowMs: number, look: boolean) => Promise<boolean>;
  /**
   * A part that is listed and of no stream, and whatever is left of its generations: as a queue, which it is closed for. Only
   * where events are kept in parts.
   */
  readonly purgePart?: (fence: number, part: ListedPart, nowMs: number) => Promise<boolean>;
  /** References that are still open in an inbox. */
  readonly countOpen: (inbox: StoredInbox) => Promise<number>;
}

export function createControlSweep(redis: RedisClient): ControlSweep {
  const ledgers = createLedgerStore(redis);
  const traffic = createTrafficStore(redis);

  async function purge(
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<boolean> {
    const answer = await redis.run(script, keys, args);
    if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${keys[0]}`);
    return answer === 'OK';
  }

  return {
    async purgeQueue(fence, { tenant, queue, gen, isOpen }, nowMs, look) {
      const q = queueKeys(tenant, queue, gen);
      const [events, ...contents] = queueContents(q);
      const keys = [q.meta, events as string, q.behind, ...contents, q.wake, q.expired];
      if (!look) await traffic.fold({ tenant, queue }, nowMs);
      return purge('purge-queue', keys, [fence, gen, nowMs, isOpen ? 1 : 0, look ? 1 : 0]);
    },

    purgeInbox(fence, { integration, sub, inc }, nowMs, retentionMs, look) {
      const i = integrationKeys(integration);
      const keys = [i.meta, i.sub(sub), ...inboxContents(inboxKeys(integration, sub, inc))];
      return purge('purge-inbox', keys, [fence, inc, nowMs, retentionMs, look ? 1 : 0]);
    },

    async purgeIntegration(fence, integration, nowMs, look) {
      const i = integrationKeys(integration);
      const keys = [i.meta, i.act, i.ledger];
      if (!(await purge('purge-integration', keys, [fence, 1])) || look) return look;
      await traffic.fold({ integration }, nowMs);
      const { gen = '', ...totals } = await redis.readHash(i.ledger);
      for (const [payer, tokens] of Object.entries(totals)) {
        const total = ledgerTotal(gen, tokens);
        // Not those of one day, `payer:day`.
        if (total !== undefined && !payer.includes(':')) await ledgers.fold(payer, new Map([[integration, total]]));
      }
      return purge('purge-integration', keys, [fence, 0]);
    },

    purgeTenant(fence, tenant, nowMs, look) {
      const t = tenantKeys(tenant);
      const week = weekOf(nowMs);
      const series = [t.series, t.seriesMarks(week), t.seriesMarks(week - 1)];
      return purge('purge-tenant', [t.meta, t.index, t.gates, t.keys, ...series], [fence, look ? 1 : 0]);
    },

    async countOpen({ integration, sub, inc }) {
      return Number(await redis.call('zcard', inboxKeys(integration, sub, inc).pending));
    },
  };
}

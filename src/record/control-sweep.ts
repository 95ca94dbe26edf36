import type { InboxRef } from '../plane/inbox-ref.ts';
import type { RedisClient } from '../redis/client.ts';
import { integrationKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import type { ScriptName } from '../redis/scripts.ts';
import { weekOf } from '../series/traffic-store.ts';
import type { ListedPart } from './control-audit.ts';
import { FencedError } from './control-store.ts';

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
   * A closed stream: when all of it was routed and delivered, or is older than its retention.
   *
   * @param look only says whether it may go
   */
  readonly purgeQueue: (
    fence: number,
    queue: { readonly tenant: string; readonly queue: string; readonly gen: string },
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
  /** A closed integration without an active group key. */
  readonly purgeIntegration: (fence: number, integration: string, nowMs: number, look: boolean) => Promise<boolean>;
  /** A tenant whose index is empty. */
  readonly purgeTenant: (fence: number, tenant: string, nowMs: number, look: boolean) => Promise<boolean>;
  /** A part that is listed and of no stream, and whatever is left of its generations: as a stream, which it is closed for. */
  readonly purgePart: (fence: number, part: ListedPart, nowMs: number) => Promise<boolean>;
}

/** Removes what the controller has recorded of what no object owns; each is asked of the part before. */
export interface RecordSweep extends Pick<ControlSweep, 'purgeIntegration' | 'purgeTenant'> {
  readonly purgeQueue: (fence: number, tenant: string, queue: string, gen: string, look: boolean) => Promise<boolean>;
  readonly purgeInbox: (fence: number, inbox: InboxRef, look: boolean) => Promise<boolean>;
}

export function createRecordSweep(redis: RedisClient): RecordSweep {
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
    purgeQueue: (fence, tenant, queue, gen, look) =>
      purge('purge-queue', [queueKeys(tenant, queue).meta], [fence, gen, look ? 1 : 0]),

    purgeInbox(fence, { integration, sub, inc }, look) {
      const i = integrationKeys(integration);
      return purge('purge-inbox', [i.meta, i.sub(sub)], [fence, inc, look ? 1 : 0]);
    },

    purgeIntegration(fence, integration, _nowMs, look) {
      const i = integrationKeys(integration);
      return purge('purge-integration', [i.meta, i.act], [fence, look ? 1 : 0]);
    },

    purgeTenant(fence, tenant, nowMs, look) {
      const t = tenantKeys(tenant);
      const week = weekOf(nowMs);
      const series = [t.series, t.seriesMarks(week), t.seriesMarks(week - 1)];
      return purge('purge-tenant', [t.meta, t.index, t.keys, ...series], [fence, look ? 1 : 0]);
    },
  };
}

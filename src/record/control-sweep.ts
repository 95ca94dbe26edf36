import type { InboxRef } from '../plane/inbox-ref.ts';
import type { RedisClient } from '../redis/client.ts';
import { integrationKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import type { ScriptName } from '../redis/scripts.ts';
import { weekOf } from '../series/traffic-store.ts';
import type { ListedPart } from './control-audit.ts';
import { FencedError } from './control-store.ts';

/** An inbox. Includes its stream if it is known. */
export interface StoredInbox extends InboxRef {
  readonly stream?: { readonly tenant: string; readonly queue: string };
}

/**
 * Removes data without an object. Each function returns whether the data can be removed or was removed. False if it is
 * not empty or not closed. A single fenced script is used to check and remove the data.
 */
export interface ControlSweep {
  /**
   * A closed stream. A closed stream can be removed when all of its events have been delivered or have expired.
   *
   * @param look if true, only returns whether it can be removed
   */
  readonly purgeQueue: (
    fence: number,
    queue: { readonly tenant: string; readonly queue: string; readonly gen: string },
    nowMs: number,
    look: boolean,
  ) => Promise<boolean>;
  /** A closed subscription. A closed subscription can be removed when all events in its inbox have expired. */
  readonly purgeInbox: (
    fence: number,
    inbox: StoredInbox,
    nowMs: number,
    retentionMs: number,
    look: boolean,
  ) => Promise<boolean>;
  /** A closed integration which does not have an active group key. */
  readonly purgeIntegration: (fence: number, integration: string, nowMs: number, look: boolean) => Promise<boolean>;
  /** A tenant that has an empty index. */
  readonly purgeTenant: (fence: number, tenant: string, nowMs: number, look: boolean) => Promise<boolean>;
  /**
   * A part in the list that does not have a stream. Includes the remaining data of its generations. Closes it first and
   * removes it like a stream.
   *
   * @param look if true, only returns whether it has to be closed, or can be removed
   */
  readonly purgePart: (fence: number, part: ListedPart, nowMs: number, look: boolean) => Promise<boolean>;
}

/** Removes records without an object. The part is checked first. */
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

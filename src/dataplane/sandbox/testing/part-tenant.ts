import { withClock } from '../../../../test/support/part/clock.ts';
import type { TenantRoutes } from '../../../core/routing/routes.ts';
import { createPartWriter } from '../../../part/control/part-writer.ts';
import { type Part, partKeys, slotOf } from '../../../part/keys.ts';
import { refOfMs } from '../../../part/lanes/ref.ts';
import { createIngest } from '../../../part/log/ingest.ts';
import { planRoutes, type StoredRoutes } from '../../../record/control-plan.ts';
import { createIngressReader } from '../../../record/ingress-store.ts';
import type { OpenKey } from '../../../record/open-keys.ts';
import { createTenant, QUEUE, START_MS } from '../../../record/testing/tenant.ts';
import type { RedisClient } from '../../../redis/client.ts';

/** A tenant with its gates and subscriptions in a part. The tenant uses a clock that only the test moves. */
export function createPartTenant(redis: RedisClient) {
  const t = createTenant(redis);
  const client: RedisClient = { ...redis, ...withClock(redis, t.nowMs) };
  const writer = createPartWriter(client, t.control.patch);
  const part: Part = { tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 };
  const keys = partKeys(part);
  const openKeys = new Map<string, OpenKey[]>();
  const fence = t.fence.epoch;
  let stored: StoredRoutes = { routes: t.routes({}, null), ready: new Set() };
  let applied = false;
  const slot = (name: string) => slotOf(t.inboxOf(name).sub, t.inboxOf(name).inc);

  const metaOf = (tenant: string, queue: string) => partKeys({ ...part, tenant, queue }).meta;

  return {
    ...t,
    part,
    keys,
    client,
    slot,
    ingress: createIngressReader(redis, t.nowMs, () => {}, metaOf),
    async apply(want: TenantRoutes) {
      await writer.write({
        fence,
        have: stored.routes,
        want,
        isKnown: applied,
        openKeys: () => openKeys,
        nowMs: t.nowMs(),
      });
      const plan = planRoutes(stored, want);
      await t.control.patch(fence, plan.patches);
      await t.control.patch(fence, plan.ready);
      stored = { routes: want, ready: new Set([...stored.ready, ...plan.ready.map(({ meta }) => meta)]) };
      applied = true;
      return plan;
    },
    async activate(name: string, groupKey: string, sinceMs = START_MS - 1_000_000) {
      await writer.change(part, fence, [{ kind: 'on', slot: slot(name), groupKey, since: refOfMs(sinceMs) }]);
    },
    async deactivate(name: string, groupKey: string) {
      await writer.change(part, fence, [{ kind: 'off', slot: slot(name), groupKey }]);
    },
    async ingest(groupKeys: readonly string[]) {
      const events = groupKeys.map(groupKey => ({ groupKey, meta: '{"s":"/x"}', body: Buffer.from('body') }));
      const { cfgv = '' } = await redis.readHash(keys.meta);
      const answer = await createIngest(client, t.nowMs)(part, cfgv, events);
      if (answer.answer !== 'OK') throw new Error(answer.answer);
      return answer.events;
    },
    /** Disables the integration endpoint in the same way as a 410 response. */
    disable: (name: string) => redis.call('hset', keys.health, slot(name), `${START_MS} 1 0 0 ${START_MS}g `),
  };
}

export type PartTenant = ReturnType<typeof createPartTenant>;

import { beforeEach, expect, test } from 'vitest';
import { stepsOf } from '../../../test/support/controller/steps.ts';
import { keyRingOf } from '../../core/delivery/key-ring.ts';
import { generationOf, publicId, tenantId } from '../../core/ids/ids.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import { createPartsControl } from '../../part/control/parts-control.ts';
import { parseRow } from '../../part/gate/subscription-row.ts';
import { type Part, partKeys, slotOf } from '../../part/keys.ts';
import { createIngest } from '../../part/log/ingest.ts';
import { createControlRecord } from '../../record/control-store.ts';
import type { RedisClient } from '../../redis/client.ts';
import { integrationKeys, tenantKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createTenants } from './tenants.ts';

let worlds = 0;

/** A workspace with one stream and one subscribed partner. An event is waiting in the partner's inbox. */
async function startWorld(redis: RedisClient) {
  const name = `lost${process.pid}x${worlds++}`;
  const tenant = tenantId(name);
  const integration = publicId('Integration', name, 'globex');
  const sub = publicId('Subscription', 'globex', 'orders');
  const uids = { stream: `stream ${name}`, subscription: `subscription ${name}` };
  const part: Part = { tenant, queue: 'orders', gen: generationOf(uids.stream), number: 0 };
  const keys = partKeys(part);
  const slot = slotOf(sub, generationOf(uids.subscription));
  const state = { isOpen: true, groupKeys: ['k'] };
  const control = createPartsControl(redis, createControlRecord(redis), Date.now);
  const meta = { createdMs: 1, deleting: false };
  const tenants = createTenants({
    control,
    nowMs: Date.now,
    compile: {
      queueMaxBytes: 1e9,
      judgeEndpoint: () => 'ok',
      sealEndpoint: () => 'sealed',
      openHeader: () => '',
      keys: keyRingOf(new Uint8Array(32)),
    },
    fence: () => 1,
    explain: error => error,
    prepare: async () => {},
    gather: () =>
      stepsOf({
        name,
        ...(state.isOpen ? { workspace: { spec: { account: name } } } : {}),
        account: { plan: 'Metered', short: false },
        secretKeys: [],
        streams: [
          {
            ...meta,
            name: 'orders',
            uid: uids.stream,
            spec: { public: true, retention: '1h', deletionPolicy: 'Retain' },
          },
        ],
        packages: [],
        blocks: [],
        integrations: [{ ...meta, name: 'globex', uid: `integration ${name}`, spec: { workspace: 'globex' } }],
        subscriptions: [
          {
            ...meta,
            name: 'orders',
            namespace: 'globex',
            uid: uids.subscription,
            spec: { producer: name, integration: 'globex', stream: 'orders' },
          },
        ],
      } as unknown as TenantSnapshot),
    objectsOf: () => [],
    knowsKeys: () => true,
    isPaused: () => false,
    openGates: () => new Map([[integration, state.groupKeys.map(groupKey => ({ groupKey, sinceMs: 1 }))]]),
    exclusively: (_name, restore) => restore(),
    onChanged: () => {},
  });
  await tenants.sync(name);
  const cfgv = (await redis.call('hget', keys.meta, 'cfgv')) as string;
  const { answer } = await createIngest(redis)(part, cfgv, [{ groupKey: 'k', meta: '{}', body: Buffer.from('body') }]);
  if (answer !== 'OK') throw new Error(answer);
  return {
    async setOpen(isOpen: boolean) {
      state.isOpen = isOpen;
      await tenants.sync(name);
    },
    /** Removes one slot from Redis, and waits until the controller detects this. */
    async lose(slotKeys: readonly string[]) {
      for (const key of slotKeys) await redis.call('del', key);
      tenants.forget([name]);
      await tenants.sync(name);
    },
    integrationSlot: [
      integrationKeys(integration).meta,
      integrationKeys(integration).act,
      integrationKeys(integration).sub(sub),
    ],
    tenantSlot: [
      tenantKeys(tenant).meta,
      tenantKeys(tenant).keys,
      tenantKeys(tenant).index,
      tenantKeys(tenant).subs('orders'),
    ],
    /** Removes the inbox from all locations, as another leader would. */
    dropInbox: () => control.dropInbox(1, tenant, { integration, sub, inc: generationOf(uids.subscription) }, 0),
    forget: () => tenants.forget([name]),
    /** Activates these group keys, as if another leader had not applied this. */
    async activate(...groupKeys: string[]) {
      state.groupKeys = groupKeys;
      tenants.forget([name]);
      await tenants.sync(name);
      const sinceMs = await control.readActivations(integration);
      return [...sinceMs.keys()].filter(groupKey => Number.isFinite(sinceMs.get(groupKey)));
    },
    async read() {
      const row = await redis.call('hget', keys.subs, slot);
      const waiting = (await redis.call('zrange', keys.pending, 0, -1)) as string[];
      return { route: typeof row === 'string' ? parseRow(row)?.route : undefined, waiting: waiting.length };
    },
  };
}

onEachRedis(redis => {
  let w: Awaited<ReturnType<typeof startWorld>>;
  beforeEach(async () => {
    w = await startWorld(redis());
    await w.setOpen(false);
  });

  test.each([
    ['of its integration', () => w.integrationSlot],
    ['of its producer', () => w.tenantSlot],
    ['of both', () => [...w.integrationSlot, ...w.tenantSlot]],
  ])('a closed inbox is kept if Redis loses the slot %s, and continues later', async (_name, lost) => {
    await w.lose(lost());
    expect(await w.read()).toEqual({ route: 'closed', waiting: 1 });
    await w.setOpen(true);
    expect(await w.read()).toEqual({ route: 'open', waiting: 1 });
  });

  test('a new leader opens and closes group keys whose Activations were changed before its term', async () => {
    await w.setOpen(true);
    expect(await w.activate('k', 'l')).toEqual(['k', 'l']);
    expect(await w.activate('l')).toEqual(['l']);
  });

  test('an inbox that another leader has removed is not recreated', async () => {
    await w.dropInbox();
    w.forget();
    await w.setOpen(false);
    expect((await w.read()).route).toBeUndefined();
  });
});

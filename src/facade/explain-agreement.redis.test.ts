import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { objectsOf, PARTNERS, type TenantState, tenantState, worldOf } from '../../test/support/facade/tenant-state.ts';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { FINALIZER } from '../api/well-known.ts';
import { publicId, tenantId } from '../core/ids/ids.ts';
import { isAfter, refMs } from '../core/ids/refs.ts';
import { pairIsOpen } from '../core/routing/activation-state.ts';
import { compileRoutes } from '../core/routing/compile-routes.ts';
import { dispositionOf, YOUNG_MS } from '../core/routing/event-disposition.ts';
import { type GateVerdict, judgeGate } from '../core/routing/gate-verdict.ts';
import { notRoutedReason } from '../core/routing/reasons.ts';
import { snapshotOf, snapshotOfIntegration, snapshotOfSubscription } from '../core/routing/snapshot-of.ts';
import { routeQueue } from '../dataplane/router/queue.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import { planRoutes } from '../redis/control-plan.ts';
import { createControlStore } from '../redis/control-store.ts';
import { createInboxStore, type InboxRef, parseInboxMember } from '../redis/inbox-store.ts';
import { createIngressOperations } from '../redis/ingress-store.ts';
import { bucketOf, inboxKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import { createLedgerStore, readBalance } from '../redis/ledger-store.ts';
import { createQueueStore } from '../redis/queue-store.ts';
import { createRoutingReader } from '../redis/routing-reader.ts';
import { event, START_MS } from '../redis/testing/tenant.ts';
import { createLogger } from '../telemetry/log.ts';
import type { Cached } from './objects/cached.ts';
import { gateOfObjects, integrationRoute } from './objects/gate-of-objects.ts';
import { factsInForce, factsWanted, shortageOf } from './resources/insight/explain.ts';

const STATES = 1_000;
const AT_ONCE = 50;
const RETENTION_MS = 3_600_000;
const KEYS = ['a', 'b', ''] as const;
let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

/** Brings a state into force as the controller does. */
async function bringIntoForce(
  given: TenantState,
  objects: ReturnType<typeof objectsOf>,
  shop: string,
  clock: { ms: number },
) {
  const control = createControlStore(redis);
  const tenant = tenantId(shop);
  const account = publicId('Account', '', shop);
  const plan = given.plan === 'Metered' ? 'Metered' : 'Free';
  const all = objects as unknown as {
    stream: Cached<'CatalogStream'>;
    packages: Cached<'Package'>[];
    blocks: Cached<'Block'>[];
    integrations: Cached<'Integration'>[];
    subscriptions: Cached<'Subscription'>[];
    workspace: Cached<'Workspace'>;
  };
  const { routes } = compileRoutes(
    {
      name: shop,
      workspace: all.workspace,
      account: { plan, short: false },
      secretKeys: [],
      streams: [snapshotOf(all.stream)],
      packages: all.packages.map(snapshotOf),
      blocks: all.blocks.map(snapshotOf),
      integrations: all.integrations.map(snapshotOfIntegration),
      subscriptions: all.subscriptions
        .filter(({ metadata }) => metadata.finalizers?.includes(FINALIZER))
        .map(snapshotOfSubscription),
    },
    { nowMs: START_MS - 500_000, queueMaxBytes: 1_000_000, judgeEndpoint: () => 'ok', sealEndpoint: () => 'sealed' },
  );
  await control.setAccount(1, account, plan, given.plan === 'Free' ? 1_000 : 0);
  const planned = planRoutes(await control.readTenant(tenant, 1), routes, clock.ms);
  await control.patch(1, planned.patches);
  await control.patch(1, planned.ready);
  for (const name of PARTNERS) {
    const integration = publicId('Integration', shop, name);
    for (const groupKey of ['a', 'b']) {
      const pair = given.activations.filter(each => each.integration === name && each.groupKey === groupKey);
      if (!pairIsOpen(pair)) continue;
      await control.setActivation(1, clock.ms, integration, groupKey, START_MS - 1_000_000, []);
      await control.setGate(1, tenant, integration, groupKey, true);
    }
  }
}

function routerOf(clock: { readonly ms: number }, owner: string, tenant: string, trimmed: Map<string, number>) {
  return routeQueue(
    {
      queues: createQueueStore(redis),
      inboxes: createInboxStore(redis),
      ledger: createLedgerStore(redis),
      owner,
      nowMs: () => clock.ms,
      signal: new AbortController().signal,
      alarm: () => {},
      lower: async () => {},
      onBatch: () => {},
    },
    { tenant, queue: 'orders' },
    trimmed,
  );
}

/** What was seen, to show that the states were of every sort. */
const seen = new Map<string, number>();
const see = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);

async function check(given: TenantState): Promise<void> {
  const shop = `shop-${randomUUID().slice(0, 8)}`;
  const clock = { ms: START_MS };
  const tenant = tenantId(shop);
  const objects = objectsOf(given, shop);
  await bringIntoForce(given, objects, shop, clock);
  const reader = createRoutingReader(redis, () => clock.ms);
  const queue = await reader.readQueue(tenant, 'orders');
  const q = queueKeys(tenant, 'orders', queue.gen);
  const short = shortageOf(await readBalance(redis, publicId('Account', '', shop)), `${tenant}:orders`);

  const explained = new Map<string, GateVerdict>();
  for (const integration of objects.integrations as unknown as Cached<'Integration'>[]) {
    for (const groupKey of KEYS) {
      const owned = { publicId: tenant, name: shop, workspace: objects.workspace as unknown as Cached<'Workspace'> };
      const stream = objects.stream as unknown as Cached<'CatalogStream'>;
      const question = { tenant: owned, stream, integration, groupKey, nowMs: clock.ms };
      const verdict = judgeGate(factsWanted(gateOfObjects(worldOf(objects), question), short));
      const id = publicId('Integration', shop, integration.metadata.name);
      const reading = await reader.readGate(tenant, { ...queue, name: 'orders' }, id, groupKey);
      const inForce = judgeGate(factsInForce(reading, queue, groupKey, short));
      // Redis knows no more of a pause than that it is one.
      const paused = ['blocked_stream', 'blocked_package', 'suspended'].includes(verdict.reason ?? '');
      expect(inForce).toEqual(paused ? { ...verdict, reason: 'paused' } : verdict);
      explained.set(`${integration.metadata.name} ${groupKey}`, verdict);
    }
  }

  const ingress = createIngressOperations(
    redis,
    () => clock.ms,
    () => {},
  );
  const config = await ingress.readQueue(tenant, 'orders');
  if (config === null || config === 'unavailable') throw new Error('no queue');
  const events = KEYS.map(groupKey => event(`event ${groupKey}`, groupKey === '' ? undefined : groupKey));
  const { outcomes } = await ingress.ingest(tenant, 'orders', config, events.toReversed());
  const refs = outcomes.map(outcome => ('ref' in outcome ? outcome.ref : '')).toReversed();
  const trimmed = new Map<string, number>();
  await routerOf(clock, 'first', tenant, trimmed);

  // By now no later activation brings an event that waits.
  clock.ms += YOUNG_MS + 1;
  const { cursor } = await reader.readQueue(tenant, 'orders');
  let held = 0;
  const found = await Promise.all(refs.map(ref => reader.findEvent(tenant, 'orders', { ref })));
  const whys = await Promise.all(refs.map(ref => redis.call('hget', q.why(bucketOf(refMs(ref))), ref)));
  const members = await redis.readHash(tenantKeys(tenant).subs('orders'));
  for (const [name, verdict] of explained) {
    const [partnerName = '', groupKey = ''] = name.split(' ');
    const at = KEYS.indexOf(groupKey as 'a');
    const ref = refs[at] as string;
    const integration = publicId('Integration', shop, partnerName);
    const member = members[integration];
    const inbox = member === undefined ? undefined : parseInboxMember(`${integration}/${member}`);
    const isThere = inbox !== undefined && (await lies(inbox, ref));
    const object = objects.integrations.find(({ metadata }) => metadata.name === partnerName);
    const read = await reader.readDisposition(tenant, 'orders', integration, { ref, groupKey });
    const facts = { id: found[at]?.id as string, groupKey, cursor, nowMs: clock.ms, ...read };
    const disposition = dispositionOf({ ...facts, integration: integrationRoute(object as never, clock.ms) });
    see(verdict.reason ?? 'routed');

    expect([name, isThere]).toEqual([name, verdict.wouldRoute]);
    // Behind an event that nobody can pay for the others wait, too, whatever becomes of them.
    if (given.plan === 'spent' && disposition.disposition === 'waiting') continue;
    expect([name, disposition.disposition]).toEqual([
      name,
      verdict.wouldRoute ? 'routed' : verdict.held ? 'waiting' : 'not_routed',
    ]);
    if (!verdict.wouldRoute && !verdict.held) expect([name, disposition.reason]).toEqual([name, verdict.reason]);
    if (verdict.held) held++;
    // What was noted is of those who subscribe and were not held, and says the same.
    const noted = String(whys[at] ?? '');
    const code = noted
      .split(',')
      .find(each => each.startsWith(`${integration}:`))
      ?.split(':')[1];
    const asked = inbox !== undefined && !isAfter(facts.id, read.subscription?.behindAt ?? cursor);
    const refused = asked && groupKey !== '' && !verdict.wouldRoute && !verdict.held;
    expect([name, code === undefined ? undefined : notRoutedReason(code)]).toEqual([
      name,
      refused ? verdict.reason : undefined,
    ]);
  }

  // What is held until the retention ends is expired, and counted.
  if (given.plan === 'spent') return;
  clock.ms += RETENTION_MS + 61_000;
  await routerOf(clock, 'second', tenant, trimmed);
  const lost = await Promise.all(
    [0, 1, 2].map(hour => redis.call('hget', q.traffic(Math.floor(START_MS / 3_600_000) + hour), 'r:expired')),
  );
  const behind = new Set([...explained].filter(([, verdict]) => verdict.held).map(([name]) => name.split(' ')[0]));
  // A paused subscription stays behind with all three, whichever of them it would have got.
  const paused = behind.size;
  expect(held).toBeGreaterThanOrEqual(paused);
  expect(lost.reduce<number>((sum, each) => sum + Number(each ?? 0), 0)).toBe(3 * paused);
  if (paused > 0) see('expired');
}

async function lies({ integration, sub, inc }: InboxRef, ref: string): Promise<boolean> {
  const { pending } = inboxKeys(integration, sub, inc);
  const members = (await redis.call('zrange', pending, 0, -1)) as string[];
  return members.some(member => member.endsWith(`\0${ref}`));
}

test(`of ${STATES} random states: what is explained, what is recorded, and what happens agree`, async () => {
  const seed = Math.floor(Math.random() * 1_000_000);
  const states = fc.sample(tenantState, { numRuns: STATES, seed });
  for (let at = 0; at < states.length; at += AT_ONCE) {
    await Promise.all(
      states.slice(at, at + AT_ONCE).map(each =>
        check(each).catch((error: unknown) => {
          throw new Error(`seed ${seed}: ${JSON.stringify(each)}`, { cause: error });
        }),
      ),
    );
  }
  const reasons = ['routed', 'missing_group_key', 'integration_closed', 'integration_pending', 'not_subscribed'];
  const held = ['not_activated', 'blocked_stream', 'blocked_package', 'suspended', 'insufficient_tokens', 'expired'];
  for (const what of [...reasons, ...held]) expect([what, (seen.get(what) ?? 0) > 20]).toEqual([what, true]);
}, 120_000);

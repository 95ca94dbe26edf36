import { randomUUID } from 'node:crypto';
import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { objectsOf, PARTNERS, type TenantState, tenantState, worldOf } from '../../test/support/facade/tenant-state.ts';
import { withClock } from '../../test/support/part/clock.ts';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { readBalance } from '../accounts/balance.ts';
import { FINALIZER } from '../api/well-known.ts';
import { keyRingOf } from '../core/delivery/key-ring.ts';
import { publicId, tenantId } from '../core/ids/ids.ts';
import { pairIsOpen } from '../core/routing/activation-state.ts';
import { compileRoutes } from '../core/routing/compile-routes.ts';
import { dispositionOf, YOUNG_MS } from '../core/routing/event-disposition.ts';
import { type GateVerdict, judgeGate } from '../core/routing/gate-verdict.ts';
import { snapshotOf, snapshotOfIntegration, snapshotOfSubscription } from '../core/routing/snapshot-of.ts';
import { createPartIngestion } from '../dataplane/part-ingestion.ts';
import { createAdvance } from '../part/catchup/advance.ts';
import { createPartsControl } from '../part/control/parts-control.ts';
import { createPartRoutingReader } from '../part/fate/routing-reader.ts';
import { partRefOf } from '../part/inbox/ref-names.ts';
import { type Part, partKeys, slotOf } from '../part/keys.ts';
import { createPartTrafficReader } from '../part/reasons/traffic-reader.ts';
import { createSweep } from '../part/sweep/sweep.ts';
import { createTokens } from '../part/tokens/tokens.ts';
import { type InboxRef, parseInboxMember } from '../plane/inbox-ref.ts';
import { planRoutes } from '../record/control-plan.ts';
import { createControlRecord } from '../record/control-store.ts';
import { event, QUEUE, START_MS } from '../record/testing/tenant.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import { tenantKeys } from '../redis/keys.ts';
import { createLogger } from '../telemetry/log.ts';
import type { Cached } from './caches/cached.ts';
import { gateOfObjects, integrationRoute } from './objects/gate-of-objects.ts';
import { factsInForce, factsWanted, shortageOf } from './resources/insight/explain.ts';

/** The number of states. The rarest reason occurs in about one of 40. `make test-model` uses 2,000. */
const STATES = Number(process.env.STATES || 600);
const AT_ONCE = 50;
const RETENTION_MS = 3_600_000;
const KEYS = ['a', 'b', ''] as const;
let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

/** Brings a state into force, like the controller. */
async function bringIntoForce(
  client: RedisClient,
  given: TenantState,
  objects: ReturnType<typeof objectsOf>,
  shop: string,
) {
  const control = createPartsControl(client, createControlRecord(client), () => START_MS);
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
    {
      nowMs: START_MS - 500_000,
      queueMaxBytes: 1_000_000,
      judgeEndpoint: () => 'ok',
      sealEndpoint: () => 'sealed',
      openHeader: () => '',
      keys: keyRingOf(new Uint8Array(32)),
    },
  );
  await control.setAccount(1, account, plan, given.plan === 'Free' ? 1_000 : 0);
  const stored = await control.readTenant(tenant, 1);
  await control.applyParts({ fence: 1, have: stored.routes, want: routes, isKnown: false, openKeys: () => new Map() });
  const planned = planRoutes(stored, routes);
  await control.patch(1, planned.patches);
  await control.patch(1, planned.ready);
  for (const name of PARTNERS) {
    const integration = publicId('Integration', shop, name);
    for (const groupKey of ['a', 'b']) {
      const pair = given.activations.filter(each => each.integration === name && each.groupKey === groupKey);
      if (!pairIsOpen(pair)) continue;
      await control.setActivation(1, integration, groupKey, START_MS - 1_000_000);
    }
  }
}

/** The tasks of a dispatcher in a part, except for deliveries: adding tokens, routing, and removing expired events. */
async function keepUp(client: RedisClient, part: Part, nowMs: number): Promise<void> {
  await createTokens(client).settle(part, nowMs);
  const advance = createAdvance(client);
  for (let more = true; more; ) {
    const answer = await advance(part);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    more = answer.more;
  }
  const sweep = createSweep(client);
  const state = {};
  for (let more = true; more; ) {
    const answer = await sweep(part, state);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    more = answer.more;
  }
}

/** The observed states, to verify that all kinds of states were tested. */
const seen = new Map<string, number>();
const see = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1);

async function check(given: TenantState): Promise<void> {
  const shop = `shop-${randomUUID().slice(0, 8)}`;
  const clock = { ms: START_MS };
  const tenant = tenantId(shop);
  const objects = objectsOf(given, shop);
  const nowMs = () => clock.ms;
  const client = { ...redis, ...withClock(redis, nowMs) };
  const all = objects.integrations as unknown as Cached<'Integration'>[];
  const stateOf = (integration: string) => {
    const object = all.find(({ metadata }) => publicId('Integration', shop, metadata.name) === integration);
    return integrationRoute(object as Cached<'Integration'>, START_MS);
  };
  await bringIntoForce(client, given, objects, shop);
  const reader = createPartRoutingReader(client, nowMs, stateOf);
  const queue = await reader.readQueue(tenant, QUEUE);
  const part: Part = { tenant, queue: QUEUE, gen: queue.gen, number: 0 };
  const short = shortageOf(await readBalance(redis, publicId('Account', '', shop)), `${tenant}:orders`);

  const explained = new Map<string, GateVerdict>();
  const subscriptions = new Map<string, string>();
  for (const integration of all) {
    for (const groupKey of KEYS) {
      const workspace = objects.workspace as unknown as Cached<'Workspace'>;
      const owned = { publicId: tenant, name: shop, workspace, role: 'Owner' as const };
      const stream = objects.stream as unknown as Cached<'CatalogStream'>;
      const question = { tenant: owned, stream, integration, groupKey, nowMs: clock.ms };
      const verdict = judgeGate(factsWanted(gateOfObjects(worldOf(objects), question), short));
      const id = publicId('Integration', shop, integration.metadata.name);
      const reading = await reader.readGate(tenant, { ...queue, name: QUEUE }, id, groupKey);
      const inForce = judgeGate(factsInForce(reading, queue, groupKey, short));
      // Redis does not distinguish pauses.
      const paused = ['blocked_stream', 'blocked_package', 'suspended'].includes(verdict.reason ?? '');
      expect(inForce).toEqual(paused ? { ...verdict, reason: 'paused' } : verdict);
      explained.set(`${integration.metadata.name} ${groupKey}`, verdict);
      subscriptions.set(integration.metadata.name, reading.subscription);
    }
  }

  const ingress = createPartIngestion({ redis: client, nowMs, alarm: () => {}, onRouted: () => {} });
  const config = await ingress.readQueue(tenant, QUEUE);
  if (config === null || config === 'unavailable') throw new Error('the stream is missing');
  const sent = KEYS.toReversed();
  const events = sent.map(groupKey => event(`event ${groupKey}`, groupKey === '' ? undefined : groupKey));
  const { answers } = await ingress.ingest(tenant, QUEUE, config, events);
  const refs = answers.map(answer => ('ref' in answer ? answer.ref : '')).toReversed();
  await keepUp(client, part, clock.ms);

  // From here on, a later activation does not route a waiting event.
  clock.ms += YOUNG_MS + 1;
  const { cursor } = await reader.readQueue(tenant, QUEUE);
  const found = await Promise.all(refs.map(ref => reader.findEvent(tenant, QUEUE, { ref })));
  const members = await redis.readHash(tenantKeys(tenant).subs(QUEUE));
  for (const [name, verdict] of explained) {
    const [partnerName = '', groupKey = ''] = name.split(' ');
    const at = KEYS.indexOf(groupKey as 'a');
    const ref = refs[at] as string;
    const integration = publicId('Integration', shop, partnerName);
    const member = members[integration];
    const inbox = member === undefined ? undefined : parseInboxMember(`${integration}/${member}`);
    const isThere = inbox !== undefined && (await lies(part, inbox, ref));
    const read = await reader.readDisposition(tenant, QUEUE, integration, { ref, groupKey });
    const facts = { id: found[at]?.id as string, groupKey, cursor, nowMs: clock.ms, ...read };
    const disposition = dispositionOf({ ...facts, integration: stateOf(integration) });
    see(verdict.reason ?? 'routed');

    expect([name, isThere]).toEqual([name, verdict.wouldRoute]);
    // Events after an event without enough tokens have to wait as well, regardless of their own outcome.
    if (given.plan === 'spent' && disposition.disposition === 'waiting') continue;
    expect([name, disposition.disposition]).toEqual([
      name,
      verdict.wouldRoute ? 'routed' : verdict.held ? 'waiting' : 'not_routed',
    ]);
    if (!verdict.wouldRoute && !verdict.held) expect([name, disposition.reason]).toEqual([name, verdict.reason]);
    // For subscribed integrations, the disposition does not depend on whether the event has already been routed.
    const refused = inbox !== undefined && groupKey !== '' && !verdict.wouldRoute && !verdict.held;
    expect([name, read.noted]).toEqual([name, refused ? verdict.reason : undefined]);
  }

  // Events which have not been routed at the end of the retention period are expired and counted.
  clock.ms += RETENTION_MS + 61_000;
  await keepUp(client, part, clock.ms);
  const hours = await createPartTrafficReader(redis).readReasons(tenant, QUEUE, '24h', clock.ms);
  const count = (word: string) => [...subscriptions.values()].filter(each => each === word).length;
  // A paused subscription is behind for all three events, regardless of which of them it would receive.
  const paused = count('paused');
  const unpaid = sent.findIndex(key => PARTNERS.some(name => isUnpaid(explained.get(`${name} ${key}`))));
  const expired = 3 * paused + (unpaid === -1 ? 0 : (3 - unpaid) * count('open'));
  expect(hours.reduce((sum, { reasons }) => sum + reasons.expired, 0)).toBe(expired);
  if (paused > 0) see('expired');
  if (unpaid > 0) see('unpaid behind others');
}

const isUnpaid = (verdict: GateVerdict | undefined) => verdict?.reason === 'insufficient_tokens';

async function lies(part: Part, { sub, inc }: InboxRef, ref: string): Promise<boolean> {
  const members = (await redis.call('zrange', partKeys(part).pending, 0, -1)) as string[];
  return members.some(member => member.startsWith(slotOf(sub, inc)) && member.endsWith(`\0${partRefOf(ref)}`));
}

test(`for ${STATES} random states, the explanation, the record, and the outcome match`, async () => {
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
  for (const what of [...reasons, ...held, 'unpaid behind others'])
    expect([what, (seen.get(what) ?? 0) > STATES / 200]).toEqual([what, true]);
}, 120_000);

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ROUTES } from '../../../src/facade/routes.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher } from '../support/publisher.ts';
import { createRestClient, type Problem, type RestClient } from '../support/rest-client.ts';
import { apply, kubectl, subscription, waitForAll } from '../support/world.ts';
import { makeSpecimens, type Specimens } from './contract/specimens.ts';
import { type FacadeWorld, openFacadeWorld } from './support/facade-world.ts';

interface Verdict {
  readonly wouldRoute: boolean;
  readonly reason: string | null;
  readonly held: boolean;
}
interface Gate extends Verdict {
  readonly integrationPublicId: string;
  readonly integrationName: string;
  readonly subscriptionPublicId: string | null;
  readonly inForce: Verdict;
}
interface Disposition {
  readonly integrationPublicId: string;
  readonly integrationName: string;
  readonly disposition: string;
  readonly reason: string | null;
  readonly state: string | null;
  readonly attempts: number;
}

let world: FacadeWorld;
let sluice: Sluice;
let specimens: Specimens;
let ada: RestClient;
let own: string;
const id = (prefix: string) => specimens.ids[prefix] as string;

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  specimens = await makeSpecimens(world, sluice, 'mine');
  ada = createRestClient(sluice.facadeUrl, await world.issuer.token({ sub: 'ada', groups: ['mine'] }));
  own = `/waas/producer/${id('ten_')}`;
});
afterAll(() => world?.stop());

/** Expects that a response matches the declaration of its route. */
function declared(operation: string, body: unknown): void {
  const schema = ROUTES.find(route => route.operation === operation)?.answers[200]?.schema;
  expect(schema?.safeParse(body).error?.issues).toBeUndefined();
}

/** Returns the explanation for the partner once it is the same in objects and data plane. */
async function verdict(groupKey = 'store-17', stream = 'parcels'): Promise<Verdict> {
  const key = groupKey === '' ? '' : `&groupKey=${encodeURIComponent(groupKey)}`;
  const path = `${own}/explain?stream=${stream}${key}&integration=${id('int_')}`;
  const { value } = await eventually(`the explanation at ${path} does not change`, async () => {
    const { status, body } = await ada.get<{ data: Gate[] }>(path);
    expect(status, JSON.stringify(body)).toBe(200);
    declared('explainRouting', body);
    const [gate] = body.data;
    if (gate === undefined) throw new Error('the explanation is missing');
    const { wouldRoute, reason, held, inForce } = gate;
    const same = inForce.wouldRoute === wouldRoute && inForce.held === held;
    const named = inForce.reason === reason || inForce.reason === 'paused';
    return same && named ? { wouldRoute, reason, held } : undefined;
  });
  return value;
}

const OPEN = { wouldRoute: true, reason: null, held: false };
const never = (reason: string) => ({ wouldRoute: false, reason, held: false });
const later = (reason: string) => ({ wouldRoute: false, reason, held: true });

async function publish(eventId: string, groupKey: string | undefined, queue = 'parcels'): Promise<void> {
  const publisher = createPublisher({
    ingressUrl: sluice.ingressUrl,
    producer: specimens.producer,
    queue,
    key: 'the-ingress-key-of-mine',
  });
  const sample = { id: eventId, body: Buffer.from('body'), sha256: '' };
  await publisher.publish(groupKey === undefined ? sample : { ...sample, groupKey });
  await publisher.close();
}

async function dispositionOf(eventId: string, wanted: (disposition: Disposition) => boolean): Promise<Disposition> {
  const path = `${own}/events/${encodeURIComponent(eventId)}?integration=${id('int_')}`;
  const { value } = await eventually(`there is a disposition of ${eventId}`, async () => {
    const { status, body } = await ada.get<{ data: Disposition[] }>(path);
    expect(status, JSON.stringify(body)).toBe(200);
    declared('getProducedEvent', body);
    const [disposition] = body.data;
    return disposition !== undefined && wanted(disposition) ? disposition : undefined;
  });
  return value;
}

const isRouted = ({ disposition }: Disposition) => disposition === 'routed';
const isNot = ({ disposition }: Disposition) => disposition === 'not_routed';

test('the explanation matches the outcome: routed, and each reason against it', async () => {
  expect(await verdict()).toEqual(OPEN);
  expect(await verdict(undefined, id('cat_'))).toEqual(OPEN);
  await publish('went', 'store-17');
  expect(await dispositionOf('went', isRouted)).toMatchObject({ state: 'pending', attempts: 0, reason: null });

  expect(await verdict('')).toEqual(never('missing_group_key'));
  await publish('keyless', undefined);
  expect(await dispositionOf('keyless', isNot)).toMatchObject({ reason: 'missing_group_key', state: null });

  expect(await verdict('store-18')).toEqual(never('not_activated'));
  await publish('closed/key ✓'.replace('✓', '%'), 'store-18');
  expect(await dispositionOf('closed/key %', isNot)).toMatchObject({ reason: 'not_activated' });

  expect(await verdict('store-17', 'refunds')).toEqual(never('not_subscribed'));
  await publish('unsubscribed', 'store-17', 'refunds');
  expect(await dispositionOf('unsubscribed', isNot)).toMatchObject({ reason: 'not_subscribed' });
});

test('a held event is reported as held, then delivered', async () => {
  const block = `${own}/integrations/${id('int_')}/blocks/streams/${id('cat_')}`;
  expect((await ada.post(block)).status).toBe(204);
  expect(await verdict()).toEqual(later('blocked_stream'));
  await publish('held', 'store-17');
  const waiting = await dispositionOf('held', ({ disposition }) => disposition === 'waiting');
  expect(waiting).toMatchObject({ reason: 'blocked_stream', state: null });
  expect((await ada.remove(block)).status).toBe(204);
  expect(await verdict()).toEqual(OPEN);
  await dispositionOf('held', isRouted);

  const subscription = `/waas/integrations/${id('int_')}/subscriptions/${id('sub_')}`;
  expect((await ada.put(subscription, { suspended: true })).status).toBe(200);
  expect(await verdict()).toEqual(later('suspended'));
  expect((await ada.put(subscription, { suspended: false })).status).toBe(200);
  expect(await verdict()).toEqual(OPEN);
});

test('a block of a package is reported as a block of a package', async () => {
  const membership = `${own}/packages/${id('pkg_')}/streams`;
  expect((await ada.post(membership, { catalogEntryPublicId: id('cat_') })).status).toBe(204);
  const block = `${own}/integrations/${id('int_')}/blocks/packages/${id('pkg_')}`;
  expect((await ada.post(block)).status).toBe(204);
  expect(await verdict()).toEqual(later('blocked_package'));
  expect((await ada.remove(block)).status).toBe(204);
  expect((await ada.remove(`${membership}/${id('cat_')}`)).status).toBe(204);
  expect(await verdict()).toEqual(OPEN);
});

test('the series and reasons match the published events', async () => {
  const partner = `/waas/integrations/${id('int_')}`;
  interface Delivery {
    readonly id: string;
    readonly eventId: string;
    readonly state: string;
    readonly replayId: string | null;
    readonly bytes: number;
    readonly tokens: number;
  }
  async function deliveries(): Promise<Delivery[]> {
    const all: Delivery[] = [];
    for (let more = ''; ; ) {
      const path = `${partner}/events?subscription=${id('sub_')}&limit=250${more}`;
      const { body } = await ada.get<{ data: Delivery[]; nextCursor: string | null }>(path);
      all.push(...body.data);
      if (body.nextCursor === null) return all.filter(({ replayId }) => replayId === null);
      more = `&cursor=${body.nextCursor}`;
    }
  }
  const held = (await deliveries()).find(({ eventId }) => eventId === 'held');
  const acknowledged = await ada.post(`${partner}/acknowledge`, {
    subscription: id('sub_'),
    events: [{ id: held?.id }],
  });
  expect(acknowledged.status).toBe(204);
  const routed = await deliveries();
  const sum = (name: 'bytes' | 'tokens') => routed.reduce((total, each) => total + each[name], 0);
  // Events without a group key, with a closed group key, and for a stream without subscriptions: three of them were not
  // routed.
  const expected = {
    eventsIn: routed.length + 3,
    deliveries: routed.filter(({ state }) => state === 'delivered').length,
    failures: 0,
    notRouted: 3,
    bytes: sum('bytes') + 12,
    tokens: sum('tokens'),
  };
  expect(expected.deliveries).toBeGreaterThan(1);
  type Series = { readonly granularitySeconds: number; readonly series: readonly Record<string, number>[] };
  for (const [query, buckets] of [
    ['?history=1h', 60],
    ['?history=24h', 96],
    ['?history=7d', 168],
    ['', 96],
  ] as const) {
    const { value } = await eventually(`the series ${query} contains all events`, async () => {
      const { status, body } = await ada.get<Series>(`${own}/metrics/series${query}`);
      expect(status, JSON.stringify(body)).toBe(200);
      declared('getMetricsSeries', body);
      const total = (name: string) => body.series.reduce((sum, bucket) => sum + (bucket[name] ?? 0), 0);
      const sums = Object.fromEntries(Object.keys(expected).map(name => [name, total(name)]));
      return JSON.stringify(sums) === JSON.stringify(expected) && body;
    });
    expect(value.series).toHaveLength(buckets);
  }
  const counted = await ada.get<{ reasons: { reason: string; count: number }[] }>(
    `${own}/metrics/not-routed?stream=${id('cat_')}`,
  );
  const reasons = Object.fromEntries(counted.body.reasons.map(({ reason, count }) => [reason, count]));
  declared('getNotRouted', counted.body);
  expect(reasons).toEqual({ missing_group_key: 1, not_activated: 1, skipped_to_now: 0, expired: 0 });
  for (const path of [
    'series?history=2h',
    'series?history=',
    'series?from=1',
    'not-routed',
    'not-routed?stream=parcels&history=x',
  ]) {
    const reply: Problem = await ada.get(`${own}/metrics/${path}`);
    expect([path, reply.status, reply.body.code]).toEqual([path, 422, 'invalid_request']);
  }
  const eve = await world.as(sluice, 'eve');
  expect((await eve.get(`${own}/metrics/series`)).status).toBe(403);
});

test('all integrations are listed, page by page', async () => {
  const first = await ada.get<{ data: Gate[]; nextCursor: string }>(
    `${own}/explain?stream=parcels&groupKey=store-17&limit=1`,
  );
  const seen = [...first.body.data];
  for (let cursor: string | null = first.body.nextCursor; cursor !== null; ) {
    const path = `${own}/explain?stream=parcels&groupKey=store-17&limit=1&cursor=${cursor}`;
    const page: { body: { data: Gate[]; nextCursor: string | null } } = await ada.get(path);
    seen.push(...page.body.data);
    cursor = page.body.nextCursor;
  }
  // The list contains the partner, and two partners who have not responded.
  const reported = new Map(seen.map(gate => [gate.integrationPublicId, gate]));
  expect(reported.size).toBe(3);
  expect(reported.get(id('int_'))).toMatchObject({ ...OPEN, subscriptionPublicId: id('sub_') });
  expect(seen.filter(({ reason }) => reason === 'integration_pending')).toHaveLength(2);
  const event = await ada.get<{ data: Disposition[] }>(`${own}/events/went?stream=parcels`);
  // Both responses contain the names of the objects, but no address.
  const names = (data: readonly Pick<Gate, 'integrationName'>[]) => data.map(each => each.integrationName).toSorted();
  const { cluster } = world.installation;
  const objects = await kubectl(cluster, [
    'get',
    'integrations',
    '-n',
    specimens.producer,
    '-o=jsonpath={.items[*].metadata.name}',
  ]);
  expect(names(seen)).toEqual(objects.split(' ').toSorted());
  expect(names(event.body.data)).toEqual(names(seen));
  expect(JSON.stringify([seen, event.body])).not.toContain('@');
  expect(event.body.data.map(({ disposition, reason }) => `${disposition} ${reason}`).toSorted()).toEqual([
    'not_routed integration_pending',
    'not_routed integration_pending',
    'routed null',
  ]);
});

test('a subscription in a workspace without a grant is not listed', async () => {
  const { cluster } = world.installation;
  const { producer } = specimens;
  const names = await kubectl(cluster, [
    'get',
    'integrations',
    '-n',
    producer,
    '-o',
    'jsonpath={.items[*].metadata.name}',
  ]);
  await kubectl(cluster, ['create', 'namespace', 'stranger']);
  const forged = names
    .split(' ')
    .map(name => subscription('stranger', producer, 'parcels', undefined, { integration: name }));
  await apply(
    cluster,
    forged.map(({ metadata, ...rest }, n) => ({ ...rest, metadata: { ...metadata, name: `forged-${n}` } })),
  );
  await waitForAll(cluster, 'subscription', 'stranger', 'Ready=Unknown');
  // The facade uses its own watch.
  await delay(500);
  const event = await ada.get<{ data: { subscriptionPublicId: string | null }[] }>(`${own}/events/went`);
  const reported = event.body.data
    .map(({ subscriptionPublicId }) => subscriptionPublicId)
    .filter(each => each !== null);
  expect(reported).toEqual([id('sub_')]);
});

test('an event is described, and can be found by its id in an inbox', async () => {
  const byId = await ada.get<Record<string, unknown>>(`${own}/events/went`);
  expect(byId.body).toMatchObject({
    eventId: 'went',
    stream: { publicId: id('cat_'), key: 'parcels' },
    type: null,
    groupKey: 'store-17',
    bytes: 4,
    tokens: 1,
    acceptedAt: expect.stringMatching(/^\d{4}-.*Z$/),
  });
  const inbox = await ada.get<{ data: { id: string; eventId: string }[] }>(
    `/waas/integrations/${id('int_')}/events?subscription=${id('sub_')}&limit=250`,
  );
  const went = inbox.body.data.find(({ eventId }) => eventId === 'went');
  expect((await ada.get(`${own}/events/${went?.id}`)).body).toEqual(byId.body);
  // The pages belong to the event, and not to the id by which it is found.
  const { nextCursor } = (await ada.get<{ nextCursor: string }>(`${own}/events/went?limit=1`)).body;
  expect((await ada.get(`${own}/events/${went?.id}?limit=1&cursor=${nextCursor}`)).status).toBe(200);
  const ofAnother: Problem = await ada.get(`${own}/events/held?limit=1&cursor=${nextCursor}`);
  expect([ofAnother.status, ofAnother.body.code]).toEqual([400, 'malformed_cursor']);
  // The id belongs to the inbox of a single subscription, and to its stream.
  const foreign = [id('act_'), id('int_')].map(other => `${went?.id.slice(0, -20)}${other.slice(4)}`);
  for (const path of [...foreign, `${went?.id}?stream=refunds`]) {
    const unknown: Problem = await ada.get(`${own}/events/${path}`);
    expect([path, unknown.status, unknown.body.code]).toEqual([path, 404, 'unknown_event']);
  }
});

test('unknown and foreign ids reveal nothing', async () => {
  const unknown: Problem = await ada.get(`${own}/events/never-sent`);
  expect([unknown.status, unknown.body.code]).toEqual([404, 'unknown_event']);
  const elsewhere: Problem = await ada.get(`${own}/events/went?stream=refunds`);
  expect([elsewhere.status, elsewhere.body.code]).toEqual([404, 'unknown_event']);
  for (const path of [`${own}/events/went?stream=nothing`, `${own}/explain?stream=nothing`]) {
    const reply: Problem = await ada.get(path);
    expect([reply.status, reply.body.code]).toEqual([404, 'unknown_resource']);
  }
  const eve = await world.as(sluice, 'eve');
  for (const path of [`${own}/explain?stream=parcels`, `${own}/events/went`]) {
    expect((await eve.get(path)).status).toBe(403);
  }
  expect((await ada.get(`${own}/explain`)).status).toBe(422);
  expect((await ada.get(`${own}/explain?stream=Parcels`)).status).toBe(422);
  expect((await ada.get(`${own}/explain?stream=parcels&groupKey=%00`)).status).toBe(422);
  expect((await ada.get(`${own}/events/${'x'.repeat(256)}`)).status).toBe(404);
  expect((await ada.get(`${own}/events/${'x'.repeat(257)}`)).status).toBe(400);
});

test('a process that is stopping responds to the requests in progress, and ends', async () => {
  const second = await world.start({ role: 'facade' });
  const client = createRestClient(second.facadeUrl, await world.issuer.token({ sub: 'ada', groups: ['mine'] }));
  const path = `/waas/integrations/${id('int_')}/events?subscription=${id('sub_')}&state=dead&wait=10`;
  const [first, polled] = [client.get(`${own}/explain?stream=parcels`), client.get(path)];
  expect((await first).status).toBe(200);
  const isWaiting = async () => (await second.metric('sluice_facade_requests_in_flight')) === 1;
  await eventually('the process has received the long poll', isWaiting, { withinMs: 9_000 });
  const exit = second.stop();
  expect(await polled).toMatchObject({ status: 200, body: { data: [], nextCursor: null } });
  expect(await exit).toMatchObject({ code: 0 });
  await expect(client.get(own)).rejects.toThrow();
});

test('a revoked integration does not receive events, and its deliveries are still listed', async () => {
  expect((await ada.post(`${own}/integrations/${id('int_')}/revoke`)).status).toBe(204);
  expect(await verdict()).toEqual(never('integration_closed'));
  await publish('too-late', 'store-17');
  expect(await dispositionOf('too-late', isNot)).toMatchObject({ reason: 'integration_closed' });
  expect(await dispositionOf('went', isRouted)).toMatchObject({ state: 'pending' });
});

test('after a subscription is deleted, the producer can still look up the events that were routed to it', async () => {
  const inbox = `/waas/integrations/${id('int_')}`;
  const { body } = await ada.get<{ data: { id: string }[] }>(`${inbox}/events?subscription=${id('sub_')}&limit=1`);
  const went = await dispositionOf('went', isRouted);
  expect((await ada.remove(`${inbox}/subscriptions/${id('sub_')}`)).status).toBe(204);
  expect((await ada.get(`${inbox}/events/${body.data[0]?.id}`)).status).toBe(404);
  expect(await dispositionOf('went', () => true)).toEqual(went);
  expect((await ada.get(`${own}/events/${body.data[0]?.id}`)).status).toBe(200);
  expect(await dispositionOf('too-late', () => true)).toMatchObject({ disposition: 'not_routed' });
});

import { isDeepStrictEqual } from 'node:util';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { activationId, blockId, publicId } from '../../../src/core/ids/ids.ts';
import { activationObjectName, blockObjectName, subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample, type Publisher } from '../support/publisher.ts';
import type { Problem, RestClient } from '../support/rest-client.ts';
import { type Accepted, accept } from './support/invitation-world.ts';
import { createSpecifiedCalls, deviations, ROWS, SERVED } from './support/specified.ts';
import { openStoryWorld, type StoryWorld } from './support/story-world.ts';

interface Listed {
  readonly data: readonly { readonly publicId: string; readonly key: string; readonly status: string }[];
}

/** The invited partners, including their resources. */
interface Partner {
  readonly client: RestClient;
  /** The `int_…` id, and the name of its object. */
  readonly integration: string;
  readonly name: string;
  /** The receiving workspace's name. */
  readonly workspace: string;
}

const KEY = 'shop-17';
const ORDERS = {
  name: 'Orders',
  eventTypes: ['order.made', 'order.paid'],
  description: 'What is sold',
  isPublic: true,
};

const { call, called } = createSpecifiedCalls();
const partners = new Map<string, Partner>();

let world: StoryWorld;
let owner: RestClient;
let producer: { readonly producerTenantPublicId: string };
let publisher: Publisher;
let tenant: { readonly tenant: string };
let pkg: string;
let orders: string;
let carts: string;

beforeAll(async () => {
  world = await openStoryWorld();
  ({ owner } = world);
  tenant = { tenant: world.shop };
  producer = { producerTenantPublicId: world.shop };
});

afterAll(async () => {
  await publisher?.close();
  await world?.stop();
});

const partner = (name: string) => partners.get(name) as Partner;
const subscriptionOf = (name: string, stream = 'orders') => subscriptionObjectName('shop', partner(name).name, stream);
const live = (name: string) =>
  world.observer.conditionOf('Subscription', subscriptionOf(name), partner(name).workspace, 'Live');
const until = (name: string, is: string) =>
  world.observer.until(['Subscription', subscriptionOf(name), partner(name).workspace, 'Live', is]);
const wish = (name: string) => ({
  catalogEntryPublicId: orders,
  endpoint: { url: world.receiver.urlOf(name), retrySchedule: ['1s', '1s'] },
});
const subscribe = (name: string) =>
  partner(name).client.post<Problem['body'] & { publicId: string; status: string }>(
    `/waas/integrations/${partner(name).integration}/subscriptions`,
    wish(name),
  );
const arrivedAt = (name: string, prefix = '') =>
  world.receiver.attempts
    .filter(({ subscription, id }) => subscription === name && id.startsWith(prefix))
    .map(({ id }) => id);

/** Publishes one event. Bob is not affected by any block and has received the event when this function returns. */
async function send(id: string): Promise<string> {
  const sample = makeSample(id, KEY, `{"id":"${id}"}`);
  const answer = await publisher.post(sample, { headers: { 'x-sluice-event-type': 'order.made' } });
  expect(answer.status, JSON.stringify(answer.body)).toBe(202);
  if (partners.has('bob')) await delivered(id, 'bob');
  return id;
}

async function delivered(id: string, to = 'grace'): Promise<void> {
  const has = async () => world.receiver.delivered(to).has(id);
  await eventually(`${id} is delivered to ${to}`, has, { everyMs: 5 });
}

/** Returns the explanation of an event for grace, as read by the producer. */
async function dispositionOf(id: string): Promise<string | undefined> {
  const path = `/waas/producer/${world.shop}/events/${id}?integration=${partner('grace').integration}`;
  const { body } = await owner.get<{ data: { disposition: string }[] }>(path);
  return body.data[0]?.disposition;
}

const pairOf = (name: string, groupKey = KEY) => ({
  ...producer,
  groupKey,
  integrationPublicId: partner(name).integration,
});

test('a workspace becomes a producer, and its streams are applied; each call can be repeated', async () => {
  for (let n = 0; n < 2; n++) {
    const enabled = await call<object>(owner, 'POST /waas/enable-producer', {}, producer);
    expect(enabled).toEqual({ publicId: world.shop, producer: true });
  }
  await world.expectSeen(['workspace', 'shop'], { publicId: world.shop, spec: { account: 'shop', producer: true } });
  const applied = await call<{ publicId: string }>(owner, 'PUT /waas/streams', {}, { ...producer, ...ORDERS });
  orders = applied.publicId;
  expect(applied).toEqual({
    publicId: publicId('CatalogStream', 'shop', 'orders'),
    key: 'orders',
    status: 'Published',
  });
  const { isPublic: _, ...rest } = ORDERS;
  const spec = { ...rest, public: true, retention: '168h', deletionPolicy: 'Retain' };
  await world.expectSeen(['catalogstream', 'orders', 'shop'], { publicId: orders, spec, Published: 'True/Published' });
  const before = await world.look('catalogstream', 'orders', 'shop');
  expect(await call(owner, 'PUT /waas/streams', {}, { ...producer, ...ORDERS })).toEqual(applied);
  expect(await world.look('catalogstream', 'orders', 'shop')).toEqual(before);

  // Streams are only published on request.
  const deprecated = await call<{ publicId: string; status: string }>(
    owner,
    'PUT /waas/streams',
    {},
    { ...producer, name: 'Carts' },
  );
  expect(deprecated.status).toBe('Deprecated');
  carts = deprecated.publicId;
  const catalog = async () =>
    (await call<Listed>(owner, 'GET /waas/producer/{tenant}/catalog', tenant)).data.map(entry => entry.publicId);
  await eventually('the catalog contains the published streams', async () => (await catalog()).join() === orders);
  await call(owner, 'PUT /waas/streams', {}, { ...producer, name: 'Carts', isPublic: true });
  await eventually('both streams are listed', async () => (await catalog()).join() === [carts, orders].join());
  const key = await owner.post<{ key: string }>(`/waas/producer/${world.shop}/ingress-keys`, { id: 'story' });
  expect(key.status).toBe(201);
  const { ingressUrl } = world.sluice;
  publisher = createPublisher({ ingressUrl, producer: 'shop', queue: 'orders', key: key.body.key });
});

test.each(['grace', 'bob'])(
  '%s is invited, accepts and creates a free account, subscribes, and does not receive events yet',
  async name => {
    const email = `${name}@example.com`;
    const invited = await call<{ publicId: string }>(owner, 'POST /waas/integrations', {}, { ...producer, email });
    expect(invited).toEqual({ publicId: invited.publicId, invitedEmail: email, status: 'Pending' });
    // The existing open block is returned with status 200.
    const again = await owner.post('/waas/integrations', { ...producer, email });
    expect([again.status, again.body]).toEqual([200, invited]);
    const token = await world.readToken(email);
    const entry = async () => {
      const { data } = await call<{ data: { publicId: string; name: string; status: string }[] }>(
        owner,
        'GET /waas/producer/{tenant}/integrations',
        tenant,
      );
      return data.find(each => each.publicId === invited.publicId);
    };
    const { name: object = '' } = (await entry()) ?? {};
    expect(await entry()).toMatchObject({ invitedEmail: email, status: 'Pending' });
    await world.expectSeen(['intg', object, 'shop'], {
      publicId: invited.publicId,
      spec: { invitedEmail: email },
      Accepted: 'False/Pending',
    });

    const client = await world.as(name);
    const { status, body } = await accept(token, client);
    expect([status, body]).toMatchObject([200, { integrationPublicId: invited.publicId, status: 'Active' }]);
    const workspace = (await world.look('intg', object, 'shop'))?.spec['workspace'] as string;
    expect((body as Accepted).workspacePublicId).toBe(publicId('Workspace', '', workspace));
    await world.expectSeen(['intg', object, 'shop'], {
      publicId: invited.publicId,
      spec: { invitedEmail: email, workspace },
      Accepted: 'True/InvitationAccepted',
    });
    const account = (await world.look('workspace', workspace))?.spec['account'] as string;
    await world.expectSeen(['account', account], {
      publicId: (body as Accepted).accountPublicId,
      spec: {
        owners: [{ issuer: world.facade.issuer.url, subject: name, role: 'Owner' }],
        plan: 'Free',
        includedTokens: 10_000,
      },
    });
    await eventually('the producer can read the subscription', async () => (await entry())?.status === 'Active');

    partners.set(name, { client, integration: invited.publicId, name: object, workspace });
    const subscribed = await subscribe(name);
    expect([subscribed.status, subscribed.body.status]).toEqual([201, 'Live']);
    const subscription = subscriptionOf(name);
    await world.expectSeen(['wsub', subscription, workspace], {
      publicId: subscribed.body.publicId,
      spec: {
        producer: 'shop',
        integration: object,
        stream: 'orders',
        ordering: 'ByGroupKey',
        deletionPolicy: 'Retain',
        endpoint: wish(name).endpoint,
      },
      Live: 'True/Live',
    });
    expect((await subscribe(name)).status).toBe(200);
  },
);

test('rule 4: events are only delivered to an integration while an activation of their group key is active', async () => {
  // Both are subscribed. Only bob has an active group key, so he receives all events from here on, and grace does not.
  const opened = await call<{ publicId: string }>(owner, 'POST /waas/activations', {}, pairOf('bob'));
  expect(opened).toEqual({
    publicId: activationId('shop', partner('bob').name, KEY),
    groupKey: KEY,
    status: 'Active',
  });
  await send('gate.before');
  expect(await dispositionOf('gate.before')).toBe('not_routed');

  const object = activationObjectName('shop', partner('grace').name, KEY);
  const spec = { integration: partner('grace').name, groupKey: KEY };
  const active = await call<{ publicId: string }>(owner, 'POST /waas/activations', {}, pairOf('grace'));
  expect(await call(owner, 'POST /waas/activations', {}, pairOf('grace'))).toEqual(active);
  await world.expectSeen(['activation', object, 'shop'], {
    publicId: active.publicId,
    spec: expect.objectContaining(spec),
    Effective: 'True/Routing',
  });
  await delivered(await send('gate.open'));
  for (let n = 0; n < 2; n++) await call(owner, 'DELETE /waas/activations', {}, pairOf('grace'));
  await world.expectSeen(['activation', object, 'shop'], {
    publicId: active.publicId,
    spec: { ...spec, revoked: true },
    Effective: 'False/Revoked',
  });
  await send('gate.closed');
  expect(await dispositionOf('gate.closed')).toBe('not_routed');
  expect(await call(owner, 'POST /waas/activations', {}, pairOf('grace'))).toEqual(active);
  await delivered(await send('gate.again'));
  expect(arrivedAt('grace')).toEqual(['gate.open', 'gate.again']);
  // The response is never 404, and nothing is created.
  await call(owner, 'DELETE /waas/activations', {}, pairOf('grace', 'never'));
  expect(await world.look('activation', activationObjectName('shop', partner('grace').name, 'never'), 'shop')).toBe(
    undefined,
  );
});

test('a delivery is signed with the secret of the subscription and contains the published bytes', async () => {
  const { client, integration } = partner('grace');
  const { body: subscription } = await subscribe('grace');
  const secret = await client.get<{ secret: string }>(
    `/waas/integrations/${integration}/subscriptions/${subscription.publicId}/secret`,
  );
  const attempt = world.receiver.attempts.find(({ subscription: at, id }) => at === 'grace' && id === 'gate.open');
  const body = '{"id":"gate.open"}';
  expect(attempt?.sha256).toBe(makeSample('', '', body).sha256);
  const headers = Object.fromEntries(
    ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => [name, String(attempt?.headers[name])]),
  );
  expect(new Webhook(secret.body.secret).verify(body, headers)).toEqual({ id: 'gate.open' });
  expect(() => new Webhook(secret.body.secret).verify(body.replace('open', 'opel'), headers)).toThrow();
  expect(attempt?.headers).toMatchObject({ 'ce-partitionkey': KEY, 'ce-type': 'order.made' });
});

test('packages group streams and can be renamed', async () => {
  const packages = '/waas/producer/{tenant}/packages';
  const wanted = { name: 'Grundlagen', description: 'for all' };
  const made = await call<{ publicId: string }>(owner, `POST ${packages}`, tenant, wanted);
  pkg = made.publicId;
  const was = { publicId: publicId('Package', 'shop', 'grundlagen'), key: 'grundlagen', name: wanted.name };
  expect(made).toEqual({ ...was, status: 'Active' });
  const expectSpec = (spec: object) =>
    world.expectSeen(['pkg', 'grundlagen', 'shop'], { publicId: pkg, spec: { name: wanted.name, ...spec } });
  await expectSpec({ description: 'for all' });
  const of = { ...tenant, pkg };
  expect(await call(owner, `PUT ${packages}/{pkg}`, of, { name: 'Basics' })).toMatchObject({
    publicId: pkg,
    key: 'grundlagen',
    name: 'Basics',
    description: null,
  });
  await expectSpec({ displayName: 'Basics' });
  for (let n = 0; n < 2; n++) {
    await call(owner, `POST ${packages}/{pkg}/streams`, of, { catalogEntryPublicId: orders });
  }
  await call(owner, `POST ${packages}/{pkg}/streams`, of, { catalogEntryPublicId: carts });
  await expectSpec({ displayName: 'Basics', streams: ['carts', 'orders'] });
  for (let n = 0; n < 2; n++) {
    const member = { ...of, catalogEntryPublicId: carts };
    await call(owner, `DELETE ${packages}/{pkg}/streams/{catalogEntryPublicId}`, member);
  }
  await expectSpec({ displayName: 'Basics', streams: ['orders'] });
  // Adding a stream to a package neither opens nor closes it.
  await delivered(await send('packaged'));
});

const BLOCKS = '/waas/producer/{tenant}/integrations/{integration}/blocks';
const STEPS = ['block stream', 'block package', 'unblock stream', 'unblock package'] as const;
type Step = (typeof STEPS)[number];

async function step(name: Step): Promise<void> {
  const verb = name.startsWith('un') ? 'DELETE' : 'POST';
  const at = { ...tenant, integration: partner('grace').integration, catalogEntryPublicId: orders, pkg };
  const target = name.endsWith('stream') ? 'streams/{catalogEntryPublicId}' : 'packages/{pkg}';
  await call(owner, `${verb} ${BLOCKS}/${target}`, at);
}

/**
 * Waits until earlier unblocks are in force. Unblocking takes effect when the watch delivers it, and a later block is
 * compiled along with it.
 */
async function compileAll(): Promise<void> {
  const at = { ...tenant, integration: partner('bob').integration, catalogEntryPublicId: carts };
  await call(owner, `POST ${BLOCKS}/streams/{catalogEntryPublicId}`, at);
  await call(owner, `DELETE ${BLOCKS}/streams/{catalogEntryPublicId}`, at);
}

async function expectBlock(stands: boolean, kind: 'CatalogStream' | 'Package', target: string): Promise<void> {
  const integration = partner('grace').name;
  const name = blockObjectName('shop', integration, kind, target);
  if (!stands) return expect(await world.look('block', name, 'shop'), `${kind} ${target}`).toBe(undefined);
  await world.expectSeen(['block', name, 'shop'], {
    publicId: blockId('shop', integration, kind, target),
    spec: { integration, target: { kind, name: target }, onUnblock: 'Continue' },
    Enforced: 'True/Enforced',
  });
}

/**
 * A sequence of calls for the four states of the two blocks. It makes each call in each state, including calls without
 * any effect. It also contains each possible pair of consecutive changes.
 */
const WALK: readonly Step[] = [
  'unblock stream',
  'unblock package',
  'block stream',
  'block stream',
  'unblock package',
  'block package',
  'block stream',
  'block package',
  'unblock stream',
  'block package',
  'unblock stream',
  'block stream',
  'unblock stream',
  'unblock package',
  'block stream',
  'unblock stream',
  'block stream',
  'block package',
  'unblock package',
  'block package',
  'unblock package',
  'unblock stream',
  'block package',
  'block stream',
  'unblock package',
  'unblock stream',
  'block package',
  'unblock package',
  'block package',
  'unblock package',
];

interface Blocked {
  readonly stream: boolean;
  readonly package: boolean;
}

function afterStep(blocked: Blocked, name: Step): Blocked {
  return { ...blocked, [name.endsWith('stream') ? 'stream' : 'package']: !name.startsWith('un') };
}

/** Returns each call of the sequence with the state before it, and each pair of consecutive changes. */
function coverageOf(walk: readonly Step[]): { readonly calls: Set<string>; readonly pairs: Set<string> } {
  const calls = new Set<string>();
  const pairs = new Set<string>();
  let blocked: Blocked = { stream: false, package: false };
  let change = '';
  for (const name of walk) {
    const call = `${JSON.stringify(blocked)} ${name}`;
    calls.add(call);
    const after = afterStep(blocked, name);
    if (!isDeepStrictEqual(after, blocked)) {
      if (change !== '') pairs.add(`${change}, ${name}`);
      change = call;
    }
    blocked = after;
  }
  return { calls, pairs };
}

test('the sequence makes each call in each state, and each pair of consecutive changes', () => {
  const { calls, pairs } = coverageOf(WALK);
  // There are two changes that lead to each state, and two changes that leave it.
  expect([calls.size, pairs.size]).toEqual([4 * STEPS.length, 4 * 2 * 2]);
});

test('a subscription is live if and only if neither its stream nor a package of it is blocked', async () => {
  let blocked: Blocked = { stream: false, package: false };
  const sent: string[] = [];
  const kept = await world.look('wsub', subscriptionOf('grace'), partner('grace').workspace);
  for (const [n, name] of WALK.entries()) {
    const each = `${n}. ${name}`;
    await step(name);
    blocked = afterStep(blocked, name);
    const isCovered = blocked.stream || blocked.package;
    if (isCovered && name.startsWith('un')) await compileAll();
    if (!isCovered) await until('grace', 'True/Live');
    sent.push(await send(`walk.${n}`));
    if (isCovered) expect(await dispositionOf(sent.at(-1) as string), each).toBe('waiting');
    else await delivered(sent.at(-1) as string);
    const arrived = isCovered ? arrivedAt('grace', 'walk.').length : sent.length;
    expect(arrivedAt('grace', 'walk.'), each).toEqual(sent.slice(0, arrived));
    if (isCovered) expect(arrived, each).toBeLessThan(sent.length);
    // A block is already in force when the response is sent, but the subscription's status is updated a moment
    // later.
    if (isCovered && !name.startsWith('un')) await until('grace', 'False/Blocked');
    expect(await live('grace'), each).toBe(isCovered ? 'False/Blocked' : 'True/Live');
    expect(await live('bob')).toBe('True/Live');
    await expectBlock(blocked.stream, 'CatalogStream', 'orders');
    await expectBlock(blocked.package, 'Package', 'grundlagen');
    const { status, body } = await subscribe('grace');
    expect([each, status, body.code ?? body.status]).toEqual([
      each,
      ...(isCovered ? [409, 'stream_blocked'] : [200, 'Live']),
    ]);
  }
  const is = await world.look('wsub', subscriptionOf('grace'), partner('grace').workspace);
  expect([is?.spec, is?.metadata.generation]).toEqual([kept?.spec, kept?.metadata.generation]);
});

test('an archived package keeps its blocks, and does not accept new ones', async () => {
  const of = { ...tenant, pkg };
  await step('block package');
  for (let n = 0; n < 2; n++) await call(owner, 'POST /waas/producer/{tenant}/packages/{pkg}/archive', of);
  await world.expectSeen(['pkg', 'grundlagen', 'shop'], {
    publicId: pkg,
    spec: { name: 'Grundlagen', displayName: 'Basics', streams: ['orders'], archived: true },
  });
  await send('archived.blocked');
  expect(await dispositionOf('archived.blocked')).toBe('waiting');
  const refused: Problem = await owner.put(`/waas/producer/${world.shop}/packages/${pkg}`, { name: 'New' });
  expect([refused.status, refused.body.code]).toEqual([409, 'package_archived']);
  await step('unblock package');
  await delivered('archived.blocked');
  const reblocked: Problem = await owner.post(
    `/waas/producer/${world.shop}/integrations/${partner('grace').integration}/blocks/packages/${pkg}`,
  );
  expect([reblocked.status, reblocked.body.code]).toEqual([409, 'package_archived']);
});

test('part 5: requires an access token of an owner of the producer, and does not accept an ingress key', async () => {
  const eve = await world.as('eve');
  for (const row of ROWS.filter(each => SERVED.includes(`${each.method} ${each.path}`))) {
    const integration = partner('grace').integration;
    const at: Record<string, string> = { ...tenant, integration, catalogEntryPublicId: orders, pkg };
    const path = row.path.replaceAll(/\{(\w+)\}/g, (_, key: string) => at[key] ?? '');
    const sends = {
      ...producer,
      groupKey: KEY,
      integrationPublicId: integration,
      email: 'e@example.com',
      name: 'Orders',
    };
    const fields = row.sends.replaceAll(/[()]/g, '').split(' ');
    const body = Object.fromEntries(
      Object.entries({ ...sends, catalogEntryPublicId: orders }).filter(([f]) => fields.includes(f)),
    );
    const sent = row.sends === '' ? undefined : body;
    expect([path, (await eve.call(row.method, path, sent)).status]).toEqual([path, 403]);
    const strangers = await fetch(`${world.sluice.facadeUrl}${path}`, { method: row.method });
    expect([path, strangers.status, strangers.headers.has('www-authenticate')]).toEqual([path, 401, true]);
  }
  const made = await owner.post<{ key: string }>(`/waas/producer/${world.shop}/ingress-keys`, { id: 'curious' });
  const { facadeUrl } = world.sluice;
  const headers = { authorization: `Bearer ${made.body.key}` };
  expect((await fetch(`${facadeUrl}/waas/producer/${world.shop}/catalog`, { headers })).status).toBe(401);
});

test('part 7: sandbox parameters are refused on the production route', async () => {
  for (const query of ['?sb_fail_code=500', '?sb_fail_count=1', '?runId=r']) {
    const sample = makeSample(`sandbox${query}`, KEY, '{}');
    expect((await publisher.post(sample, { query })).status).toBe(400);
  }
});

test('the series contains the deliveries to the partners', async () => {
  await eventually('the series contains all deliveries', async () => {
    const row = 'GET /waas/producer/{tenant}/metrics/series';
    const { series } = await call<{ series: readonly Record<string, number>[] }>(owner, row, tenant);
    const total = (name: string) => series.reduce((sum, bucket) => sum + (bucket[name] ?? 0), 0);
    expect(series).toHaveLength(96);
    return total('deliveries') + total('failures') === world.receiver.attempts.length && total('eventsIn') > 0;
  });
});

test('all rows of the specification that are served were called', () => {
  expect(called()).toEqual(SERVED);
});

test('a response that differs from its row is reported with the difference', () => {
  const row = ROWS.find(({ path }) => path === '/waas/activations');
  const reply = {
    status: 201,
    headers: new Headers({ 'content-type': 'application/json' }),
    body: { publicId: 'act_1', groupKey: 'k', status: 'Open', more_ids: [{ accountPublicId: 'ten_1' }] },
  };
  expect(row && deviations(row, reply)).toEqual([
    'status 201 and not 200',
    'fields groupKey,more_ids,publicId,status and not groupKey,publicId,status',
    'publicId is "act_1"',
    'status is "Open"',
    '/more_ids is not camelCase',
    '/more_ids/0/accountPublicId is ten_1',
  ]);
});

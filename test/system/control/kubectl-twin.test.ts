import { afterAll, beforeAll, expect, test } from 'vitest';
import { API_VERSION } from '../../../src/api/group-version.ts';
import { WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { hashIngressKey } from '../../../src/core/ids/ingress-key.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import { createRandom } from '../../support/random.ts';
import { accept } from '../rest/support/invitation-world.ts';
import { openStoryWorld, type StoryWorld } from '../rest/support/story-world.ts';
import { controlDiff, readControlLines } from '../support/control-dump.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import type { Reply, RestClient } from '../support/rest-client.ts';
import { kubectl, type Manifest } from '../support/world.ts';

const SEED = Number(process.env['SEED'] || 20_261_121);
const EXPIRES_AT = '2099-12-31T00:00:00.000Z';

/** The names of a partner which are used to derive public ids. A user of kubectl needs to know them. */
interface Partner {
  readonly email: string;
  readonly client: RestClient;
  readonly id: string;
  readonly name: string;
  readonly workspace: string;
  readonly account: string;
}

let rest: StoryWorld;
let twin: Installation;
let shop: string;
let keys: string[];
const partners: Record<string, Partner> = {};

beforeAll(async () => {
  [rest, twin] = await Promise.all([openStoryWorld(), install()]);
  ({ shop } = rest);
});

afterAll(async () => {
  await Promise.all([rest?.stop(), twin?.stop()]);
});

async function succeed<T = unknown>(call: Promise<Reply<T>>): Promise<T> {
  const { status, body } = await call;
  expect(status, JSON.stringify(body)).toBeLessThan(300);
  return body;
}

const cat = (name: string) => publicId('CatalogStream', 'shop', name);
const pkg = (name: string) => publicId('Package', 'shop', name);
const of = (name: string) => partners[name] as Partner;
const endpointOf = (name: string) => ({ url: rest.receiver.urlOf(name), retrySchedule: ['1s', '5m'] });

async function invite(name: string): Promise<Partner> {
  const email = `${name}@example.com`;
  const call = rest.owner.post<{ publicId: string }>('/waas/integrations', { producerTenantPublicId: shop, email });
  const { publicId: id } = await succeed(call);
  const entry = await succeed(rest.owner.get<{ name: string }>(`/waas/producer/${shop}/integrations/${id}`));
  const client = await rest.as(name);
  return (partners[name] = { email, client, id, name: entry.name, workspace: '', account: '' });
}

async function join(name: string): Promise<void> {
  const { email, client, ...invited } = await invite(name);
  await succeed(accept(await rest.readToken(email), client));
  const workspace = (await rest.look('intg', invited.name, 'shop'))?.spec['workspace'] as string;
  const account = (await rest.look('workspace', workspace))?.spec['account'] as string;
  partners[name] = { email, client, ...invited, workspace, account };
}

const subscribe = (name: string, stream: string, wish: object = {}) =>
  succeed(
    of(name).client.post<{ publicId: string }>(`/waas/integrations/${of(name).id}/subscriptions`, {
      catalogEntryPublicId: cat(stream),
      ...wish,
    }),
  );

const pairOf = (name: string, groupKey: string) => ({
  producerTenantPublicId: shop,
  groupKey,
  integrationPublicId: of(name).id,
});
const open = (name: string, groupKey: string) => succeed(rest.owner.post('/waas/activations', pairOf(name, groupKey)));
const close = (name: string, groupKey: string) =>
  succeed(rest.owner.remove('/waas/activations', pairOf(name, groupKey)));
const blocks = (name: string) => `/waas/producer/${shop}/integrations/${of(name).id}/blocks`;

/** Applies the story using REST. This contains many changes which are reverted later. */
async function tellByRest(): Promise<void> {
  const { owner } = rest;
  const packages = `/waas/producer/${shop}/packages`;
  await succeed(owner.post('/waas/enable-producer', { producerTenantPublicId: shop }));
  for (const body of [
    { name: 'Orders', eventTypes: ['order.paid', 'order.made'], description: 'What is sold', isPublic: true },
    { name: 'Carts', isPublic: true },
    { name: 'Stock', isPublic: true, eventTypes: ['stock.moved'] },
  ]) {
    await succeed(owner.put('/waas/streams', { producerTenantPublicId: shop, ...body }));
  }
  await succeed(owner.put('/waas/streams', { producerTenantPublicId: shop, name: 'Stock', isPublic: true }));

  keys = [];
  for (const key of [{ id: 'first' }, { id: 'second', expiresAt: EXPIRES_AT }, { id: 'third' }]) {
    keys.push((await succeed(owner.post<{ key: string }>(`/waas/producer/${shop}/ingress-keys`, key))).key);
  }
  await succeed(owner.remove(`/waas/producer/${shop}/ingress-keys/third`));

  for (const name of ['Basics', 'Old']) await succeed(owner.post(packages, { name }));
  for (const [name, stream] of [
    ['basics', 'orders'],
    ['basics', 'carts'],
    ['basics', 'stock'],
    ['old', 'stock'],
  ] as const) {
    await succeed(owner.post(`${packages}/${pkg(name)}/streams`, { catalogEntryPublicId: cat(stream) }));
  }
  await succeed(owner.remove(`${packages}/${pkg('basics')}/streams/${cat('stock')}`));

  await join('grace');
  await join('bob');
  await invite('carol');
  await succeed(owner.post(`/waas/producer/${shop}/integrations/${(await invite('dave')).id}/revoke`));

  await subscribe('grace', 'orders', { endpoint: { ...endpointOf('grace'), timeoutSeconds: 7 } });
  await subscribe('grace', 'carts');
  const dropped = await subscribe('grace', 'stock');
  await succeed(of('grace').client.remove(`/waas/integrations/${of('grace').id}/subscriptions/${dropped.publicId}`));
  await subscribe('bob', 'orders', { ordering: 'None', endpoint: endpointOf('bob') });
  await subscribe('bob', 'stock');
  const later = await subscribe('bob', 'carts');
  const path = `/waas/integrations/${of('bob').id}/subscriptions/${later.publicId}`;
  const headers = [{ name: 'x-key', value: 'a secret value' }];
  await succeed(of('bob').client.put(path, { suspended: true, endpoint: { ...endpointOf('carts'), headers } }));

  for (const groupKey of ['red', 'green', 'blue']) await open('grace', groupKey);
  await close('grace', 'green');
  await close('grace', 'blue');
  await open('grace', 'blue');
  await open('bob', 'red');
  await open('carol', 'red');

  await succeed(owner.post(`${blocks('grace')}/streams/${cat('carts')}`));
  await succeed(owner.post(`${blocks('grace')}/packages/${pkg('basics')}`));
  await succeed(owner.remove(`${blocks('grace')}/packages/${pkg('basics')}`));
  await succeed(owner.post(`${blocks('bob')}/packages/${pkg('old')}`));
  await succeed(owner.post(`${packages}/${pkg('old')}/archive`));
  await succeed(owner.put('/waas/streams', { producerTenantPublicId: shop, name: 'Carts' }));
}

const manifest = (kind: string, name: string, spec: object, namespace?: string): Manifest => ({
  apiVersion: API_VERSION,
  kind,
  metadata: namespace === undefined ? { name } : { name, namespace },
  spec,
});

/**
 * A stream with a subscription. The subscription to a deprecated stream must be admitted before the deprecation, as
 * with REST.
 */
const CARTS = manifest('CatalogStream', 'carts', { public: true }, 'shop');
const DEPRECATED_CARTS = manifest('CatalogStream', 'carts', {}, 'shop');

/** Returns the same world with different names, except for names used to derive a public id. */
function twinManifests(): Manifest[] {
  const owners = [{ issuer: 'https://login.example.com', subject: 'somebody', role: 'Owner' }];
  const [grace, bob] = [of('grace'), of('bob')];
  const ingressKeys = [
    { id: 'one', sha256: hashIngressKey(keys[0] as string) },
    { id: 'two', sha256: hashIngressKey(keys[1] as string), expiresAt: EXPIRES_AT },
  ];
  const ours = (kind: string, name: string, spec: object) => manifest(kind, name, spec, 'shop');
  const subscription = ({ name: integration, workspace }: Partner, stream: string, spec: object = {}) => {
    const name = subscriptionObjectName('shop', integration, stream);
    return manifest('Subscription', name, { producer: 'shop', integration, stream, ...spec }, workspace);
  };
  return [
    manifest('Account', 'shop', { owners, plan: 'Metered' }),
    manifest('Workspace', 'shop', { account: 'shop', ingressKeys }),
    ...[grace, bob].flatMap(({ account, workspace }) => [
      manifest('Account', account, { owners }),
      manifest('Workspace', workspace, { account }),
    ]),
    ours('CatalogStream', 'orders', { public: true, eventTypes: ['order.made', 'order.paid'] }),
    CARTS,
    ours('CatalogStream', 'stock', { public: true }),
    ours('Package', 'basics', { streams: ['orders', 'carts'] }),
    ours('Package', 'old', { streams: ['stock'], archived: true }),
    ...[grace, bob].map(({ name, workspace }) => ours('Integration', name, { workspace })),
    ours('Integration', of('carol').name, { invitedEmail: 'carol@example.com' }),
    ours('Integration', of('dave').name, { invitedEmail: 'dave@example.com', revoked: true }),
    ours('Activation', 'a-1', { integration: grace.name, groupKey: 'red' }),
    ours('Activation', 'a-2', { integration: grace.name, groupKey: 'green', revoked: true }),
    ours('Activation', 'a-3', { integration: grace.name, groupKey: 'blue' }),
    ours('Activation', 'a-4', { integration: bob.name, groupKey: 'red' }),
    ours('Activation', 'a-5', { integration: of('carol').name, groupKey: 'red' }),
    ours('Block', 'b-1', { integration: grace.name, target: { kind: 'CatalogStream', name: 'carts' } }),
    ours('Block', 'b-2', { integration: bob.name, target: { kind: 'Package', name: 'old' } }),
    subscription(grace, 'orders', { endpoint: { ...endpointOf('grace'), timeoutSeconds: 7 } }),
    subscription(grace, 'carts'),
    subscription(bob, 'orders', { ordering: 'None', endpoint: endpointOf('bob') }),
    subscription(bob, 'stock'),
    subscription(bob, 'carts', {
      suspended: true,
      endpoint: { ...endpointOf('carts'), headers: [{ name: 'x-key', value: 'a secret value' }] },
    }),
  ];
}

/** The partners which do not accept an invitation. */
const NEVER_READY = /carol|dave/;

async function tellByKubectl(): Promise<string> {
  const { cluster } = twin;
  const random = createRandom(SEED);
  const manifests = twinManifests()
    .map(each => [random(), each] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, each]) => each);
  for (const name of ['shop', of('grace').workspace, of('bob').workspace]) {
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels: { [WORKSPACE_LABEL]: name } } };
    await kubectl(cluster, ['apply', '-f', '-'], JSON.stringify(namespace));
  }
  for (const each of manifests) await kubectl(cluster, ['apply', '-f', '-'], JSON.stringify(each));
  const readyInTime = async ({ kind, metadata }: Manifest): Promise<void> => {
    if (NEVER_READY.test(Object.keys(partners).find(name => of(name).name === metadata.name) ?? '')) return;
    const where = metadata.namespace === undefined ? [] : ['-n', metadata.namespace];
    const how = ['--for=jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', '--timeout=120s'];
    await kubectl(cluster, [
      'wait',
      `${kind.toLowerCase()}.${API_VERSION.split('/')[0]}/${metadata.name}`,
      ...where,
      ...how,
    ]);
  };
  for (const each of manifests) await readyInTime(each);
  await kubectl(cluster, ['apply', '-f', '-'], JSON.stringify(DEPRECATED_CARTS));
  await readyInTime(DEPRECATED_CARTS);
  return manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`).join(' ');
}

test('REST and kubectl result in the same state in Redis, even with a different order', async () => {
  await tellByRest();
  await twin.start();
  const order = await tellByKubectl();
  const context = `SEED=${SEED}, in the order ${order}`;
  const first = await readControlLines(rest.facade.installation.redis.url, rest.sluice);
  const same = async () => controlDiff(first, await readControlLines(twin.redis.url, rest.sluice)) === '';
  // Each object has its own Ready condition. Changes which the last object causes in other objects happen shortly
  // after.
  await eventually('both states are equal', same).catch(() => undefined);
  expect(controlDiff(first, await readControlLines(twin.redis.url, rest.sluice)), context).toBe('');

  // The comparison includes the complete state, which is not empty.
  const count = (part: RegExp) => first.filter(line => part.test(line)).length;
  expect({
    activations: count(/:act: /),
    keys: count(/:keys: /),
    paused: count(/: route=(paused|held)/),
    open: count(/: route=open/),
    subscriptions: count(/: route=/),
    endpoints: count(/: endpoint\.url=/),
    queues: count(/^\{q:.*: state=/),
    tenants: count(/^\{c\}:tenants/),
    subscribers: count(/:subs:/),
  }).toMatchObject({ activations: 4, keys: 2, subscriptions: 5, endpoints: 3, queues: 3, subscribers: 5 });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { INSTANCE_LABEL, INVITATION_SECRET_TYPE, WORKSPACE_LABEL } from '../../../src/api/well-known.ts';
import { publicId, tenantId } from '../../../src/core/ids/ids.ts';
import { type Issuer, startIssuer } from '../../support/issuer.ts';
import { DOCUMENTED, type RedisServer, startRedis } from '../../support/redis/server.ts';
import type { Sluice, SluiceOptions } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { goodsOf, type Instance, keyOf, partnerOf, shopOf, versionsOf, workspaceOf } from '../support/instances.ts';
import { type Observer, observe } from '../support/observer.ts';
import { createPublisher, makeSample } from '../support/publisher.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { createRestClient, type RestClient } from '../support/rest-client.ts';
import { apply, kubectl, type Manifest, stream, subscription, waitForAll } from '../support/world.ts';

let installed: Installation;
let blueRedis: RedisServer;
let issuer: Issuer;
let receiver: Receiver;
let observer: Observer;

beforeAll(async () => {
  [installed, blueRedis, issuer, receiver] = await Promise.all([
    install({ controllerManager: true }),
    startRedis({ appendonly: true, extra: DOCUMENTED }),
    startIssuer(),
    startReceiver(),
  ]);
  observer = observe(installed.cluster.kubeconfig);
  await kubectl(installed.cluster, ['create', 'namespace', 'blue-system']);
});

afterAll(async () => {
  await observer?.close();
  await installed?.stop();
  await Promise.all([blueRedis?.stop(), receiver?.close(), issuer?.close()]);
});

/** Starts all roles of an installation. */
function start(instance: Instance, options: Partial<SluiceOptions> = {}): Promise<Sluice> {
  if (instance === '') return installed.start({ ...options, env: { ...issuer.env, ...options.env } });
  const env = { ...issuer.env, SLUICE_INSTANCE: 'blue', SLUICE_NAMESPACE: 'blue-system', ...options.env };
  return installed.start({ redisUrl: blueRedis.url, ...options, env });
}

/** Applies the workspaces of a running installation, followed by their objects. */
async function settle(instance: Instance): Promise<void> {
  const { cluster } = installed;
  const names = [shopOf(instance), partnerOf(instance)];
  await apply(
    cluster,
    names.flatMap(name => workspaceOf(instance, issuer, name)),
  );
  for (const name of names) await observer.until(['Workspace', name, undefined, 'Ready', 'True/NamespaceReady']);
  await apply(cluster, goodsOf(instance, receiver));
  await ready(instance);
}

async function ready(instance: Instance): Promise<void> {
  await waitForAll(installed.cluster, 'activation', shopOf(instance), 'Effective');
  await waitForAll(installed.cluster, 'subscription', partnerOf(instance), 'Live');
}

interface Owned {
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec: { readonly instance?: string; readonly account?: string };
}

/** Publishes an event to the shop of an installation and waits until the partner has received it. */
async function deliver(sluice: Sluice, instance: Instance, id: string): Promise<void> {
  const publisher = createPublisher({
    ingressUrl: sluice.ingressUrl,
    producer: shopOf(instance),
    queue: 'orders',
    key: keyOf(instance),
  });
  const sent = await publisher.publish(makeSample(id, 'key', id));
  await publisher.close();
  expect(sent.status).toBeLessThan(300);
  await receiver.arrival(sent.body.id ?? id, partnerOf(instance));
}

const callAs = async (sluice: Sluice, sub = 'ada'): Promise<RestClient> =>
  createRestClient(sluice.facadeUrl, await issuer.token({ sub }));

async function namesOf(sluice: Sluice, path: string): Promise<string[]> {
  const { body } = await (await callAs(sluice)).get<{ data: { name: string }[] }>(path);
  return body.data.map(({ name }) => name);
}

describe('two installations in one cluster', () => {
  let plain: Sluice;
  let blue: Sluice;

  test('the installation with a name ignores the tenants of the other installation, which has no controller yet', async () => {
    const { cluster } = installed;
    const given = [shopOf(''), partnerOf('')];
    const labels = (name: string) => ({ name, labels: { [WORKSPACE_LABEL]: name } });
    await apply(cluster, [
      ...given.map(name => ({ apiVersion: 'v1', kind: 'Namespace', metadata: labels(name) })),
      ...given.flatMap(name => workspaceOf('', issuer, name)),
      ...goodsOf('', receiver),
    ]);
    const before = await versionsOf(installed.cluster, '');
    blue = await start('blue');
    await settle('blue');
    await deliver(blue, 'blue', 'first');
    expect(await versionsOf(installed.cluster, '')).toEqual(before);
  });

  test('labels its objects with its name', async () => {
    const namespace = await kubectl(installed.cluster, ['get', 'namespace', shopOf('blue'), '-o=json']);
    const { metadata } = JSON.parse(namespace) as { readonly metadata: { readonly labels: object } };
    expect(metadata.labels).toMatchObject({ [WORKSPACE_LABEL]: shopOf('blue'), [INSTANCE_LABEL]: 'blue' });
  });

  test('the installation without a name does not create anything for the tenants of the other installation while that one is stopped', async () => {
    await blue.stop();
    const before = await versionsOf(installed.cluster, 'blue');
    expect(Object.keys(before).length).toBeGreaterThan(10);
    plain = await start('');
    await ready('');
    await deliver(plain, '', 'second');
    // Objects in a namespace without a Workspace belong to this installation. When they have been processed, all
    // existing objects have been.
    await apply(installed.cluster, [stream('default', 'astray')]);
    await observer.until(['CatalogStream', 'astray', 'default', 'Ready', 'Unknown/WaitingForWorkspace']);
    expect(await versionsOf(installed.cluster, 'blue')).toEqual(before);
  });

  test('each installation only delivers the events of its own tenants', async () => {
    blue = await start('blue');
    await deliver(blue, 'blue', 'third');
    await deliver(plain, '', 'fourth');
    for (const [sluice, other] of [
      [blue, ''],
      [plain, 'blue'],
    ] as const) {
      const ingress = { ingressUrl: sluice.ingressUrl, producer: shopOf(other), queue: 'orders', key: keyOf(other) };
      const publisher = createPublisher(ingress);
      expect((await publisher.post(makeSample('astray', 'key', 'x'))).status).toBe(401);
      await publisher.close();
      // A process delivers events before its controller leads.
      const count = (kind: string) => sluice.metric('sluice_controller_objects', { kind });
      const isCounted = async () => (await count('Workspace')) === 2 && (await count('Activation')) === 1;
      await eventually('it only counts its own objects', isCounted);
    }
  });

  test('a reference to an object of the other installation is treated as missing', async () => {
    const { cluster } = installed;
    const [, stray] = workspaceOf('blue', issuer, 'blue-stray', shopOf('')) as [Manifest, Manifest];
    await apply(cluster, [stray]);
    await observer.until(['Workspace', 'blue-stray', undefined, 'Ready', 'Unknown/WaitingForAccount']);
    await kubectl(cluster, ['delete', 'workspace/blue-stray', 'namespace/blue-stray', '--timeout=120s']);
    for (const producer of ['no-such-shop', shopOf('')]) {
      const name = `${producer}-orders`;
      await apply(cluster, [subscription(partnerOf('blue'), producer, 'orders', undefined)]);
      await observer.until(['Subscription', name, partnerOf('blue'), 'Ready', 'Unknown/WaitingForGrant']);
      await kubectl(cluster, ['delete', 'subscription', name, '-n', partnerOf('blue'), '--timeout=120s']);
    }
  });

  test('the REST API of one installation does not return anything of the other installation', async () => {
    for (const [sluice, own, other] of [
      [plain, '', 'blue'],
      [blue, 'blue', ''],
    ] as const) {
      const names = [partnerOf(own), shopOf(own)];
      expect(await namesOf(sluice, '/waas/workspaces')).toEqual(names);
      expect(await namesOf(sluice, '/waas/accounts')).toEqual(names);
      const ada = await callAs(sluice);
      const statusOf = async (path: string) => (await ada.get(path)).status;
      expect(await statusOf(`/waas/workspaces/${tenantId(shopOf(own))}`)).toBe(200);
      expect(await statusOf(`/waas/workspaces/${tenantId(shopOf(other))}`)).toBe(403);
      expect(await statusOf(`/waas/accounts/${publicId('Account', '', shopOf(other))}`)).toBe(403);
      const before = await versionsOf(installed.cluster, other);
      const body = { producerTenantPublicId: tenantId(shopOf(other)), name: 'more', isPublic: true };
      expect((await ada.put('/waas/streams', body)).status).toBe(403);
      expect(
        (await ada.post('/waas/enable-producer', { producerTenantPublicId: tenantId(shopOf(other)) })).status,
      ).toBe(403);
      expect(await versionsOf(installed.cluster, other)).toEqual(before);
    }
  });

  test('objects created by the REST API of one installation are unknown to the other installation', async () => {
    const { cluster } = installed;
    const invitation = { producerTenantPublicId: tenantId(shopOf('blue')), email: 'grace@example.com' };
    expect((await (await callAs(blue)).post('/waas/integrations', invitation)).status).toBe(201);
    // Without a mail server, the controller writes the token to a Secret.
    const secrets = ['get', 'secrets', '-n', shopOf('blue'), '--field-selector', `type=${INVITATION_SECRET_TYPE}`];
    const readToken = () => kubectl(cluster, [...secrets, '-o=jsonpath={.items[*].data.token}']);
    const { value } = await eventually('the Secret contains the token', async () => (await readToken()) || undefined);
    const body = { token: Buffer.from(value, 'base64').toString() };
    const [here, there] = await Promise.all([callAs(blue, 'grace'), callAs(plain, 'grace')]);
    expect((await there.post('/waas/invitations/accept', body)).status).toBe(404);
    const accepted = await here.post<{ workspacePublicId: string }>('/waas/invitations/accept', body);
    expect(accepted.status, JSON.stringify(accepted.body)).toBe(200);
    expect(await here.post('/waas/invitations/accept', body)).toMatchObject({ status: 200, body: accepted.body });
    const all = await kubectl(cluster, ['get', 'workspaces,accounts', '-o=json']);
    const { items } = JSON.parse(all) as { readonly items: readonly Owned[] };
    const made = items.find(({ metadata }) => tenantId(metadata.name) === accepted.body.workspacePublicId);
    const account = items.find(({ kind, metadata }) => kind === 'Account' && metadata.name === made?.spec.account);
    expect([made?.spec.instance, account?.spec.instance]).toEqual(['blue', 'blue']);
    expect((await there.get('/waas/workspaces')).body).toMatchObject({ data: [] });
  });

  test('a namespace labeled for one installation is not adopted by the other installation', async () => {
    const { cluster } = installed;
    const labels = { [WORKSPACE_LABEL]: 'plain-late', [INSTANCE_LABEL]: 'blue' };
    await apply(cluster, [
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'plain-late', labels } },
      ...workspaceOf('', issuer, 'plain-late'),
    ]);
    await observer.until(['Workspace', 'plain-late', undefined, 'Ready', 'False/NamespaceNotAdopted']);
    await kubectl(cluster, ['label', 'namespace', 'plain-late', `${INSTANCE_LABEL}-`]);
    await observer.until(['Workspace', 'plain-late', undefined, 'Ready', 'True/NamespaceReady']);
    await kubectl(cluster, ['delete', 'workspace/plain-late', 'namespace/plain-late', '--timeout=120s']);
  });

  test('tenants of one installation can be deleted while the other is stopped, even a workspace before its namespace', async () => {
    const { cluster } = installed;
    await plain.stop();
    const before = await versionsOf(installed.cluster, '');
    await kubectl(cluster, ['delete', 'workspace', shopOf('blue'), '--timeout=120s']);
    await kubectl(cluster, ['delete', 'namespace', shopOf('blue'), partnerOf('blue'), '--timeout=120s']);
    await kubectl(cluster, ['delete', 'workspace', partnerOf('blue'), '--timeout=120s']);
    expect(await versionsOf(installed.cluster, '')).toEqual(before);

    await blue.stop();
    plain = await start('');
    await kubectl(cluster, ['delete', 'workspace', shopOf(''), '--timeout=120s']);
    await kubectl(cluster, ['delete', 'namespace', shopOf(''), partnerOf(''), '--timeout=120s']);
  });

  test('a second installation does not lead with the same Redis, and explains what to change', async () => {
    await plain.stop();
    const wrong = await start('blue', { redisUrl: installed.redis.url, unready: true });
    const sentence =
      'the data belongs to the default installation, but SLUICE_INSTANCE makes this the installation blue. Set SLUICE_REDIS_URL to a separate Redis for each installation';
    await eventually('the reason is reported', async () => (await wrong.readyz())[1].includes(sentence));
    expect(await wrong.metric('sluice_role_impaired', { reason: 'ForeignRedis' })).toBeGreaterThan(0);
    await wrong.stop();
  });
});

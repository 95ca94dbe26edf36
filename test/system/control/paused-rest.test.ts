import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { subscriptionObjectName } from '../../../src/core/ids/object-names.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from '../rest/support/facade-world.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import { PRODUCER, QUEUE, RETRY_SOON, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';
import { kubectl } from '../support/world.ts';

const PARTNERS = ['ada', 'bob', 'eve'];

let world: FacadeWorld;
let small: Running;
let publisher: Publisher;
let owner: RestClient;
let bob: RestClient;
let shop: string;
let leaked: string;

const intg = (partner: string) => publicId('Integration', PRODUCER, partner);
const pair = (groupKey: string, partner = 'ada') => ({
  producerTenantPublicId: shop,
  groupKey,
  integrationPublicId: intg(partner),
});
const blockOf = (partner: string) =>
  `/waas/producer/${shop}/integrations/${intg(partner)}/blocks/streams/${publicId('CatalogStream', PRODUCER, QUEUE)}`;
const annotate = (value: string) =>
  kubectl(world.installation.cluster, ['annotate', '--overwrite', 'workspace', PRODUCER, `sluice.dev/paused${value}`]);
const attemptsOf = (id: string) =>
  small.receiver.attempts.filter(attempt => attempt.id === id).map(attempt => attempt.subscription);

beforeAll(async () => {
  world = await openFacadeWorld();
  const sluice = await world.start();
  small = await settle(world.installation, { partners: PARTNERS, groupKeys: ['kept', 'closed'] });
  publisher = small.publisherOf(sluice);
  ({ [PRODUCER]: shop = '' } = await makeTenants(world, { [PRODUCER]: 'owner', bob: 'bob' }));
  [owner, bob] = await Promise.all([world.as(sluice, 'owner'), world.as(sluice, 'bob')]);
  await subscribeThroughRest();
  leaked = await makeKey();
  await annotate('=true');
  const refused = async () => (await owner.post<Problem['body']>('/waas/activations', pair('new'))).body.code;
  await eventually('the facade has seen the pause', async () => (await refused()) === 'workspace_paused');
});

afterAll(async () => {
  await small?.close();
  await world?.stop();
});

/** REST can only delete subscriptions that no other tool manages. */
async function subscribeThroughRest(): Promise<void> {
  const { cluster } = world.installation;
  await kubectl(cluster, ['delete', 'subscription', SUBSCRIPTION, '-n', 'bob']);
  const made = await bob.post(`/waas/integrations/${intg('bob')}/subscriptions`, {
    catalogEntryPublicId: publicId('CatalogStream', PRODUCER, QUEUE),
    endpoint: { url: small.receiver.urlOf('bob'), retrySchedule: RETRY_SOON },
  });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
}

const keys = () => `/waas/producer/${shop}/ingress-keys`;

/** Creates an ingress key through REST, and returns it. */
async function makeKey(): Promise<string> {
  const made = await owner.post<{ key: string }>(keys(), { id: 'leaked' });
  expect(made.status, JSON.stringify(made.body)).toBe(201);
  return made.body.key;
}

/** Sends an event and waits until a partner that can receive it has received it. */
async function send(id: string, groupKey: string, to: string): Promise<void> {
  expect((await publisher.post(makeSample(id, groupKey, id))).status).toBe(202);
  await eventually(`${id} is delivered`, async () => attemptsOf(id).includes(to));
}

async function expectStatus(call: Promise<Reply>, status: number): Promise<void> {
  const reply = await call;
  expect(reply.status, JSON.stringify(reply.body)).toBe(status);
}

async function expectPaused(call: Promise<Reply>): Promise<void> {
  const { status, body } = (await call) as Problem;
  expect([status, body.code]).toEqual([409, 'workspace_paused']);
}

test('an ingress key that is deleted in a paused workspace is refused', async () => {
  const post = async (id: string) => (await publisher.post(makeSample(id, 'nobody', id), { key: leaked })).status;
  expect(await post('leaked-before')).toBe(202);
  await expectStatus(owner.remove(`${keys()}/leaked`), 204);
  await expectStatus(owner.remove(`${keys()}/leaked`), 204);
  await eventually('ingress refuses the key', async () => (await post('leaked-after')) === 401);
  await expectPaused(owner.post(keys(), { id: 'another' }));
  await send('with-another-key', 'kept', 'eve');
});

test('a call that closes something in a paused workspace returns when it is closed', async () => {
  await send('before', 'closed', 'ada');
  await expectStatus(owner.remove('/waas/activations', pair('closed')), 204);
  await send('deactivated', 'closed', 'bob');
  expect(attemptsOf('deactivated')).not.toContain('ada');

  await expectStatus(owner.post(blockOf('ada')), 204);
  await send('blocked', 'kept', 'bob');
  expect(attemptsOf('blocked')).not.toContain('ada');

  const subscription = `/waas/integrations/${intg('bob')}/subscriptions/${publicId('Subscription', 'bob', subscriptionObjectName(PRODUCER, 'bob', QUEUE))}`;
  await expectStatus(bob.remove(subscription), 204);
  await send('unsubscribed', 'kept', 'eve');
  expect(attemptsOf('unsubscribed')).toEqual(['eve']);

  await expectStatus(owner.post(`/waas/producer/${shop}/integrations/${intg('eve')}/revoke`), 204);
  expect((await publisher.post(makeSample('revoked', 'kept', 'revoked'))).status).toBe(202);
});

test('each call can be repeated, and none of them is reverted', async () => {
  await expectStatus(owner.remove('/waas/activations', pair('closed')), 204);
  await expectStatus(owner.post(blockOf('ada')), 204);
  await expectPaused(owner.remove(blockOf('ada')));
  await expectPaused(owner.post('/waas/activations', pair('closed')));
  await expectPaused(owner.put('/waas/streams', { producerTenantPublicId: shop, name: QUEUE }));
  const again = { catalogEntryPublicId: publicId('CatalogStream', PRODUCER, QUEUE) };
  await expectPaused(bob.post(`/waas/integrations/${intg('bob')}/subscriptions`, again));
});

test('everything is still closed after the pause, and held events are delivered', async () => {
  await annotate('-');
  await eventually('the workspace has resumed', async () => (await owner.remove(blockOf('ada'))).status === 204);
  await eventually('the events of blocked streams are delivered', async () => attemptsOf('blocked').includes('ada'));
  expect(attemptsOf('deactivated')).not.toContain('ada');
  await send('after', 'kept', 'ada');
  expect(attemptsOf('after')).toEqual(['ada']);
  expect(attemptsOf('revoked')).not.toContain('eve');
});

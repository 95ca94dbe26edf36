import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { INVITATION_SECRET_FIELD, INVITATION_SECRET_TYPE } from '../../../../src/api/well-known.ts';
import { blockId, publicId, tenantId } from '../../../../src/core/ids/ids.ts';
import type { Sluice } from '../../../support/sluice.ts';
import { eventually } from '../../support/deadline.ts';
import { createPublisher } from '../../support/publisher.ts';
import { createRestClient, type RestClient } from '../../support/rest-client.ts';
import { apply, ingressKey, integration, kubectl, type Manifest, tenant } from '../../support/world.ts';
import type { FacadeWorld } from '../support/facade-world.ts';

/** The group key and the event id in the examples of the reference. */
const EXAMPLE_GROUP_KEY = 'store-17';
const EXAMPLE_EVENT = 'order-4711';
/** The issuer and group of a member in the examples of the reference. */
const EXAMPLE_ISSUER = 'https://login.example.com';
const EXAMPLE_GROUP = 'admins';
const EVENTS = 80;

/** One of each resource, for a producer and its partner. */
export interface Specimens {
  readonly producer: string;
  readonly partner: string;
  /**
   * Ids by prefix: `ten_` is the producer, `cat_` a published stream, and so on. Also replaces the issuer and the group
   * in the examples.
   */
  readonly ids: Readonly<Record<string, string>>;
}

const sampleOf = (id: string) => {
  const body = Buffer.from(JSON.stringify({ id }));
  return { id, groupKey: EXAMPLE_GROUP_KEY, body, sha256: createHash('sha256').update(body).digest('hex') };
};

function owned(name: string, issuer: string, group: string): Manifest[] {
  return tenant(name, { plan: 'Metered', owners: [{ issuer, group, role: 'Owner' }] });
}

/** The number of times that a call is repeated after a 503, which is always safe. */
const REPEATS = 5;

/** Sends a request that must succeed. Returns its `publicId`, if there is one. */
async function call(
  client: RestClient,
  method: 'POST' | 'PUT',
  path: string,
  body?: Readonly<Record<string, unknown>>,
): Promise<string> {
  const send = () => client.call<{ publicId: string } | undefined>(method, path, body);
  let reply = await send();
  for (let repeats = 0; reply.status === 503 && repeats < REPEATS; repeats++) {
    await delay(1_000);
    reply = await send();
  }
  if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${JSON.stringify(reply.body)}`);
  return reply.body?.publicId ?? '';
}

/**
 * Creates a producer `<name>-shop` with two streams (one of which is blocked), a package, and two open invitations, and
 * a partner `<name>-buyer` with an integration, an activation, and a subscription, whose inbox contains some events,
 * one of which was acknowledged and replayed. Callers with the group in their token own both. `pushed`: the
 * subscription has an endpoint that does not respond.
 */
export async function makeSpecimens(
  world: FacadeWorld,
  sluice: Sluice,
  group: string,
  { name = group, pushed = false }: { readonly name?: string; readonly pushed?: boolean } = {},
): Promise<Specimens> {
  const { cluster } = world.installation;
  const [producer, partner] = [`${name}-shop`, `${name}-buyer`];
  const key = `the-ingress-key-of-${name}`;
  await apply(cluster, [
    ...owned(producer, world.issuer.url, group),
    ...owned(partner, world.issuer.url, group),
    ingressKey(producer, key),
    integration(producer, partner),
  ]);
  const token = await world.issuer.token({ sub: 'maker', groups: [group] });
  const client = createRestClient(sluice.facadeUrl, token);
  const producerTenantPublicId = tenantId(producer);
  const integrationPublicId = publicId('Integration', producer, partner);
  const own = `/waas/producer/${producerTenantPublicId}`;

  const streamOf = { producerTenantPublicId, isPublic: true };
  const parcels = await call(client, 'PUT', '/waas/streams', { ...streamOf, name: 'Parcels' });
  const refunds = await call(client, 'PUT', '/waas/streams', { ...streamOf, name: 'Refunds' });
  const pkg = await call(client, 'POST', `${own}/packages`, { name: 'Starter' });
  await call(client, 'POST', `${own}/packages/${pkg}/streams`, { catalogEntryPublicId: refunds });
  await call(client, 'POST', `${own}/integrations/${integrationPublicId}/blocks/streams/${refunds}`);
  const activated = { producerTenantPublicId, integrationPublicId, groupKey: EXAMPLE_GROUP_KEY };
  const act = await call(client, 'POST', '/waas/activations', activated);
  for (let n = 1; n <= INVITATIONS; n++) {
    await call(client, 'POST', '/waas/integrations', { producerTenantPublicId, email: `${name}-${n}@example.com` });
  }
  const subscribed = { catalogEntryPublicId: parcels };
  const sub = await call(client, 'POST', `/waas/integrations/${integrationPublicId}/subscriptions`, subscribed);
  const inbox = `/waas/integrations/${integrationPublicId}`;
  const publisher = createPublisher({ ingressUrl: sluice.ingressUrl, producer, queue: 'parcels', key });
  const names = Array.from({ length: EVENTS }, (_, i) => (i === 0 ? EXAMPLE_EVENT : `order-${i}`));
  await publisher.publishAll(names.map(sampleOf));
  await publisher.close();
  const [done = '', open = ''] = await eventsIn(client, inbox, sub, EVENTS);
  await call(client, 'POST', `${inbox}/acknowledge`, { subscription: sub, events: [{ id: done }] });
  const replay = await client.post<{ replayId: string }>(`${inbox}/events/${done}/replay`);
  const endpoint = { url: 'https://partner.example/hooks/orders' };
  if (pushed) await call(client, 'PUT', `${inbox}/subscriptions/${sub}`, { endpoint });
  return {
    producer,
    partner,
    ids: {
      ten_: producerTenantPublicId,
      cat_: parcels,
      pkg_: pkg,
      int_: integrationPublicId,
      act_: act,
      blk_: blockId(producer, partner, 'CatalogStream', 'refunds'),
      sub_: sub,
      evt_: pushed ? open : done,
      rpl_: replay.body.replayId,
      acc_: publicId('Account', '', producer),
      [EXAMPLE_ISSUER]: world.issuer.url,
      [EXAMPLE_GROUP]: group,
    },
  };
}

/** Waits until a subscription has `count` events. Returns the ids of all its events, oldest first. */
async function eventsIn(client: RestClient, inbox: string, sub: string, count: number): Promise<string[]> {
  const path = `${inbox}/events?subscription=${sub}&limit=250`;
  const read = async () => {
    const { body } = await client.get<{ data?: { id: string }[] }>(path);
    return (body.data?.length ?? 0) >= count && body.data;
  };
  const { value } = await eventually(`${count} events in ${inbox}`, read);
  return value.map(({ id }) => id);
}

/** The number of unanswered invitations of a producer. */
export const INVITATIONS = 2;

/**
 * Returns the tokens of all open invitations, once there are `count`. They are stored in Secrets because there is no
 * mail server.
 */
export async function readInvitationTokens(
  { installation: { cluster } }: FacadeWorld,
  count: number,
): Promise<string[]> {
  const path = `{range .items[?(@.type=="${INVITATION_SECRET_TYPE}")]}{.data.${INVITATION_SECRET_FIELD}}{" "}{end}`;
  const read = async () => {
    const text = await kubectl(cluster, ['get', 'secrets', '-A', '-o', `jsonpath=${path}`]);
    const tokens = text.split(' ').flatMap(each => (each === '' ? [] : [Buffer.from(each, 'base64').toString()]));
    return tokens.length >= count && tokens;
  };
  return (await eventually(`${count} tokens`, read)).value;
}

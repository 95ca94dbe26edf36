import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { activationId, publicId, tenantId } from '../../../src/core/ids/ids.ts';
import type { ProblemDocument } from '../../../src/core/problems/problem.ts';
import type { Route } from '../../../src/facade/contract/route.ts';
import { ROUTES } from '../../../src/facade/routes.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { createPublisher, makeSample } from '../support/publisher.ts';
import type { Reply, RestClient } from '../support/rest-client.ts';
import {
  activation,
  apply,
  ingressKey,
  integration,
  kubectl,
  pkg,
  stream,
  subscription,
  waitForAll,
} from '../support/world.ts';
import { CASES, type Case, type IdKind, type IdPosition, isScope } from './support/authorization-matrix.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from './support/facade-world.ts';

/**
 * Tests the authorization of every route. Three people own a tenant each, all with the same names. Each of them is the
 * producer for the next one and receives events from the previous one. Each route is called with each id that belongs
 * to another tenant.
 */

const TENANTS = ['alpha', 'beta', 'gamma'] as const;
type Tenant = (typeof TENANTS)[number];
const OWNER: Record<Tenant, string> = { alpha: 'ada', beta: 'bob', gamma: 'eve' };
const next = (tenant: Tenant): Tenant => TENANTS[(TENANTS.indexOf(tenant) + 1) % TENANTS.length] as Tenant;
const previous = (tenant: Tenant): Tenant => TENANTS[(TENANTS.indexOf(tenant) + 2) % TENANTS.length] as Tenant;

type Ids = Readonly<Record<IdKind, string>>;

const NOBODY = '0'.repeat(20);
const UNKNOWN: Ids = {
  tenant: `ten_${NOBODY}`,
  stream: `cat_${NOBODY}`,
  package: `pkg_${NOBODY}`,
  integration: `int_${NOBODY}`,
  received: `int_${NOBODY}`,
  activation: `act_${NOBODY}`,
  subscription: `sub_${NOBODY}`,
  account: `acc_${NOBODY}`,
  event: '',
  key: 'nobodys',
  replay: 'nobodys',
  offered: `cat_${NOBODY}`,
  published: 'nobodys',
};
const MALFORMED = ['x', `cat-${NOBODY}`, `ten_${NOBODY}x`, `TEN_${NOBODY}`, '-', 'ä', `act_${'u'.repeat(20)}`];

/** The body sent to each route, with the ids of the test case. */
const BODIES: Readonly<Record<string, (ids: Ids) => object>> = {
  applyStream: ids => ({ producerTenantPublicId: ids.tenant, name: 'orders', isPublic: true }),
  inviteIntegration: ids => ({ producerTenantPublicId: ids.tenant, email: 'somebody@example.com' }),
  acceptInvitation: ids => ({ token: `sinv_${'A'.repeat(43)}`, accountPublicId: ids.account }),
  declineInvitation: () => ({ token: `sinv_${'A'.repeat(43)}` }),
  enableProducer: ids => ({ producerTenantPublicId: ids.tenant }),
  createIngressKey: () => ({ id: 'another' }),
  replaceMembers: ids => {
    const tenant = TENANTS.find(each => idsOf[each].account === ids.account) ?? 'alpha';
    return { members: [{ issuer: world.issuer.url, subject: OWNER[tenant], role: 'Owner' }] };
  },
  createPackage: () => ({ name: 'another' }),
  updatePackage: () => ({ name: 'renamed' }),
  addStreamToPackage: ids => ({ catalogEntryPublicId: ids.stream }),
  activate: ids => ({ producerTenantPublicId: ids.tenant, integrationPublicId: ids.integration, groupKey: 'k' }),
  deactivate: ids => ({ producerTenantPublicId: ids.tenant, integrationPublicId: ids.integration, groupKey: 'k' }),
  revokeActivation: ids => ({
    producerTenantPublicId: ids.tenant,
    integrationPublicId: ids.integration,
    groupKey: 'k',
  }),
  subscribe: ids => ({ catalogEntryPublicId: ids.offered }),
  changeSubscription: () => ({ suspended: false }),
  rotateSigningSecret: () => ({}),
  recoverEvents: () => ({ since: '2026-01-01T00:00:00Z' }),
  skipEvent: () => ({}),
  skipEvents: ids => ({ upTo: ids.event }),
  pullEvents: ids => ({ subscription: ids.subscription }),
  acknowledgeEvents: ids => ({ subscription: ids.subscription, events: [{ id: ids.event }] }),
  replayEvents: ids => ({
    subscription: ids.subscription,
    since: '2026-01-01T00:00:00Z',
    until: '2099-01-01T00:00:00Z',
  }),
};

/** Additional query parameters, by operation. */
const QUERIES: Readonly<Record<string, (ids: Ids) => string>> = {
  listEvents: ids => `?subscription=${ids.subscription}&eventId=${ids.published}`,
  listActivations: ids => `?integration=${ids.integration}`,
  getProducedEvent: ids => `?stream=${ids.stream}&integration=${ids.integration}`,
  getNotRouted: ids => `?stream=${ids.stream}`,
  explainRouting: ids => `?stream=${ids.stream}&groupKey=k&integration=${ids.integration}`,
};

/** The query parameters of routes that take their fields either in the body or as query parameters. */
const INSTEAD_OF_BODIES: Readonly<Record<string, (ids: Ids) => string>> = {
  deactivate: ids => `?producerTenantPublicId=${ids.tenant}&integrationPublicId=${ids.integration}&groupKey=k`,
};

let world: FacadeWorld;
let sluice: Sluice;
const clients = {} as Record<Tenant, RestClient>;
/**
 * Several owners of each workspace take turns because each of them has separate points, and there are thousands of
 * calls.
 */
const TEAM = 16;
const memberOf = (tenant: Tenant, number: number) => `${OWNER[tenant]}-${number}`;
/** Returns the clients of a workspace's owners, using two replicas. */
const teams = {} as Record<Tenant, RestClient[]>;
const atAnother = {} as Record<Tenant, RestClient[]>;
let turns = 0;
const idsOf = {} as Record<Tenant, Ids>;

async function makeWorld(): Promise<void> {
  const { cluster } = world.installation;
  const key = (tenant: Tenant) => ({ id: `key-${tenant}`, sha256: 'a'.repeat(64) });
  await apply(
    cluster,
    TENANTS.flatMap(tenant => ownedTenant(world.issuer, tenant, OWNER[tenant])),
  );
  for (const tenant of TENANTS) {
    const names = [OWNER[tenant], ...Array.from({ length: TEAM }, (_, number) => memberOf(tenant, number))];
    const owners = names.map(subject => ({ issuer: world.issuer.url, subject, role: 'Owner' }));
    const patch = JSON.stringify({ spec: { ingressKeys: [key(tenant)] } });
    await kubectl(cluster, ['patch', 'workspace', tenant, '--type=merge', '-p', patch]);
    await kubectl(cluster, ['patch', 'account', tenant, '--type=merge', '-p', JSON.stringify({ spec: { owners } })]);
  }
  await apply(
    cluster,
    TENANTS.flatMap(tenant => [
      stream(tenant, 'orders'),
      pkg(tenant, 'basic', ['orders']),
      integration(tenant, 'partner', { workspace: next(tenant) }),
      activation(tenant, 'partner', 'k'),
      ingressKey(tenant, `ingress-key-secret-of-${tenant}`),
      subscription(tenant, previous(tenant), 'orders', undefined, { integration: 'partner' }),
    ]),
  );
  for (const tenant of TENANTS) {
    await waitForAll(cluster, 'subscription', tenant, 'Live');
    await waitForAll(cluster, 'activation', tenant, 'Effective');
  }
}

const subscriptionOf = (tenant: Tenant) => publicId('Subscription', tenant, `${previous(tenant)}-orders`);

/** Returns the id of the event in the inbox of `tenant`. */
async function eventOf(tenant: Tenant): Promise<string> {
  const publisher = createPublisher({
    ingressUrl: sluice.ingressUrl,
    producer: previous(tenant),
    queue: 'orders',
    key: `ingress-key-secret-of-${previous(tenant)}`,
  });
  expect((await publisher.publish(makeSample(`for ${tenant}`, 'k', 'something'))).status).toBe(202);
  await publisher.close();
  const received = publicId('Integration', previous(tenant), 'partner');
  const { value } = await eventually('the event is in the inbox', async () => {
    const path = `/waas/integrations/${received}/events?subscription=${subscriptionOf(tenant)}`;
    const list = await clients[tenant].get<{ data: { id: string }[] }>(path);
    return list.body.data[0]?.id;
  });
  return value;
}

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  const another = await world.start({ role: 'facade' });
  await makeWorld();
  for (const tenant of TENANTS) {
    clients[tenant] = await world.as(sluice, OWNER[tenant]);
    const numbers = Array.from({ length: TEAM }, (_, number) => number);
    const team = (at: Sluice) => Promise.all(numbers.map(number => world.as(at, memberOf(tenant, number))));
    [teams[tenant], atAnother[tenant]] = await Promise.all([team(sluice), team(another)]);
    idsOf[tenant] = {
      tenant: tenantId(tenant),
      stream: publicId('CatalogStream', tenant, 'orders'),
      package: publicId('Package', tenant, 'basic'),
      integration: publicId('Integration', tenant, 'partner'),
      received: publicId('Integration', previous(tenant), 'partner'),
      activation: activationId(tenant, 'partner', 'k'),
      subscription: subscriptionOf(tenant),
      account: publicId('Account', '', tenant),
      event: await eventOf(tenant),
      key: `key-${tenant}`,
      replay: `replay-of-${tenant}`,
      offered: publicId('CatalogStream', previous(tenant), 'orders'),
      published: `for ${next(tenant)}`,
    };
  }
});
afterAll(() => world?.stop());

/** Returns all data written by users, without data recorded by the controller. */
async function everything(): Promise<string> {
  const plurals = Object.values(KINDS).map(({ plural }) => `${plural}.sluice.dev`);
  const list = JSON.parse(
    await kubectl(world.installation.cluster, ['get', plurals.join(','), '--all-namespaces', '-o', 'json']),
  ) as { items: { kind: KindName; metadata: { namespace?: string; name: string; uid: string }; spec: object }[] };
  const { items } = list;
  return JSON.stringify(
    items.map(({ kind, metadata: { namespace, name, uid }, spec }) => [kind, namespace, name, uid, spec]),
  );
}

function send(
  route: Route,
  tenant: Tenant,
  ids: Ids,
  inPath: Readonly<Record<string, string>>,
  { client = clients[tenant], where }: { client?: RestClient | undefined; where?: IdPosition['where'] } = {},
): Promise<Reply> {
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(inPath[name] ?? ''));
  const instead = where === 'query' ? INSTEAD_OF_BODIES[route.operation] : undefined;
  const query = encodeURI((instead ?? QUERIES[route.operation])?.(ids) ?? '');
  const body = instead === undefined ? BODIES[route.operation]?.(ids) : undefined;
  return client.call(route.method, `${path}${query}`, body);
}

/** Sends the request of a test case. All other ids in the request belong to the caller. */
function attempt({ route, position }: Case, tenant: Tenant, id: string, team = teams[tenant]): Promise<Reply> {
  const client = team[turns++ % team.length];
  const ids = { ...idsOf[tenant], [position.kind]: id };
  const inPath = Object.fromEntries(
    CASES.filter(each => each.route === route && each.position.where === 'path').map(({ position: { name, kind } }) => [
      name,
      name === position.name ? id : idsOf[tenant][kind],
    ]),
  );
  const { where } = position;
  return send(route, tenant, where === 'path' ? idsOf[tenant] : ids, inPath, { client, where });
}

/**
 * Returns an id that does not exist. For events, returns an id in the caller's inbox with a position that does not
 * exist.
 */
function unknownOf(kind: IdKind, tenant: Tenant): string {
  return kind === 'event' ? idsOf[tenant].event.replace(/^evt_.{4}/, 'evt_0000') : UNKNOWN[kind];
}

/** Runs `work` for all items, with this concurrency. */
async function all<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  };
  await Promise.all(Array.from({ length: 24 }, worker));
}

const named = ({ route, position }: Case) => `${route.operation} ${position.where} ${position.name}`;

test('BODIES contains every route with a body, and every id position is known', () => {
  const without = ROUTES.filter(route => route.body !== undefined && !(route.operation in BODIES));
  expect(without.map(({ operation }) => operation)).toEqual([]);
  const either = CASES.filter(({ route, position }) => position.where === 'query' && route.operation in BODIES);
  expect(new Set(either.map(({ route }) => route.operation))).toEqual(new Set(Object.keys(INSTEAD_OF_BODIES)));
  expect(CASES.length).toBeGreaterThan(100);
});

describe.each(TENANTS)('the owner of %s', tenant => {
  test('cannot read, detect, or change anything of other owners', async () => {
    const before = await everything();
    const others = TENANTS.filter(each => each !== tenant);
    const failures: string[] = [];
    await all(
      CASES.filter(({ value }) => value === 'foreign'),
      async each => {
        const ofNobody = await attempt(each, tenant, unknownOf(each.position.kind, tenant));
        for (const other of others) {
          // A received integration belongs to another tenant, but access is not considered foreign here.
          if (idsOf[other][each.position.kind] === idsOf[tenant][each.position.kind]) continue;
          const foreign = await attempt(each, tenant, idsOf[other][each.position.kind]);
          // An event id includes the id of its subscription, which is sufficient to reject a body.
          const isEvent = each.position.kind === 'event' && each.position.where === 'body';
          const unknown = isEvent ? await attempt(each, tenant, unknownOf('event', other)) : ofNobody;
          // A filter only applies to the caller's inbox, which contains the event of one of the others.
          const isFilter = each.position.kind === 'published' && each.position.where === 'query';
          if (isFilter && idsOf[other].published === `for ${tenant}`) continue;
          const elsewhere = isEvent ? [404, 422] : [204, 403, 404];
          const wanted = isScope(each.route, each.position) ? [403] : isFilter ? [200] : elsewhere;
          const same =
            foreign.status === unknown.status && JSON.stringify(foreign.body) === JSON.stringify(unknown.body);
          const isFound = isFilter && (foreign.body as { data: unknown[] }).data.length > 0;
          if (!wanted.includes(foreign.status) || !same || isFound) {
            const describeReply = (reply: Reply) => `${reply.status} ${JSON.stringify(reply.body)}`;
            failures.push(`${named(each)} of ${other}: ${describeReply(foreign)}, unknown: ${describeReply(unknown)}`);
          }
        }
      },
    );
    expect(failures).toEqual([]);
    expect(await everything()).toBe(before);
  });

  test('receives a response with each malformed field and its place', async () => {
    const failures: string[] = [];
    await all(
      CASES.filter(({ value }) => value === 'malformed'),
      async each => {
        for (const id of MALFORMED) {
          if (['key', 'replay', 'published'].includes(each.position.kind) && /^[\w-]+$/.test(id)) continue;
          const reply = (await attempt(each, tenant, id, atAnother[tenant])) as Reply<ProblemDocument>;
          // A stream can be specified by its id or its key.
          const key = each.position.where === 'query' && each.position.kind === 'stream';
          const wanted = each.position.where === 'path' ? [400, 404] : key ? [404, 422] : [422];
          if (!wanted.includes(reply.status))
            failures.push(`${named(each)} ${id}: ${reply.status} ${reply.body?.code}`);
        }
      },
    );
    expect(failures).toEqual([]);
  });
});

/** The operations that end something, which are called last. */
const ENDING = /^(revoke|unsubscribe|delete|deactivate|archive|block|remove|decline)/;
const IN_ORDER = ROUTES.toSorted((a, b) => rankOf(a) - rankOf(b));

function rankOf({ method, operation }: Route): number {
  if (method === 'GET') return 0;
  return ENDING.test(operation) ? 2 : 1;
}

test('receives the declared response for their own objects', async () => {
  const failures: string[] = [];
  for (const route of IN_ORDER) {
    for (const tenant of TENANTS) {
      const inPath = Object.fromEntries(
        CASES.filter(each => each.route === route && each.position.where === 'path').map(({ position }) => [
          position.name,
          idsOf[tenant][position.kind],
        ]),
      );
      const reply = await send(route, tenant, idsOf[tenant], inPath);
      const declared = Object.keys(route.answers).map(Number);
      // This invitation and this replay do not exist, and there is no endpoint with a secret.
      const reading = { getReplay: [404], getSigningSecret: [409] }[route.operation] ?? [];
      const refused = route.method === 'GET' ? reading : [404, 409];
      if (!declared.includes(reply.status) && !refused.includes(reply.status)) {
        failures.push(`${tenant} ${route.operation}: ${reply.status} ${JSON.stringify(reply.body)}`);
      }
    }
  }
  expect(failures).toEqual([]);
});

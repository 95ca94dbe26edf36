import { type ChildProcess, fork } from 'node:child_process';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId, tenantId } from '../../src/core/ids/ids.ts';
import type { OpenApiDocument } from '../../src/facade/openapi.ts';
import { median } from '../bench/report/statistics.ts';
import { createAuthority } from '../support/certificates.ts';
import type { Sluice } from '../support/sluice.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { makeSpecimens } from '../system/rest/contract/specimens.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from '../system/rest/support/facade-world.ts';
import { createRestClient } from '../system/support/rest-client.ts';
import {
  activation,
  apply,
  ingressKey,
  integration,
  stream,
  subscription,
  tenant,
  waitForAll,
} from '../system/support/world.ts';
import { createClient } from './client.ts';
import { type Attacker, connectionFloods, type Flood, routeFloods, specialFloods } from './floods.ts';
import type { Answers, Attack, NeighbourFigures, NeighbourSettings } from './messages.ts';
import { pinToControl, pinToData } from './processors.ts';

/**
 * One tenant floods each route of the facade, ingress, operations that are more expensive than expected, and
 * connections, one after another. Another tenant must not be affected. `make test-hostile` prints its latencies during
 * each flood, compared to the latencies immediately before.
 */

const FLOOD_MS = Number(process.env['FLOOD_MS'] || 3_000);
const NAMES = (process.env['FLOOD'] ?? '').split(',').filter(name => name !== '');
/** The number of streams with payload schemas of 128 KiB, which are on the same page of a list. */
const LARGE_STREAMS = 250;
/**
 * The size of the events that wait for the endpoint before the first flood. This is slightly less than the quota of 1
 * GiB.
 */
const FULL = { events: 4_000, bytes: 262_000 };
const LIMITS = {
  SLUICE_TRUSTED_PROXIES: '127.0.0.0/8',
  SLUICE_INGRESS_ADDRESS_LIMIT: '2000',
  SLUICE_INGRESS_KEY_LIMIT: '200',
};
const QUEUE = 'orders';
const GROUP_KEY = 'customer-42';

/** The measurements immediately before and during a flood. */
interface Pair {
  readonly flood: Flood;
  readonly answers: Answers;
  readonly quiet: NeighbourFigures;
  readonly beside: NeighbourFigures;
}

let world: FacadeWorld;
let folder: TemporaryFolder;
let neighbour: ChildProcess;
let attacking: ChildProcess;
let hanging: Server;
const pairs: Pair[] = [];

/** Sends a message to a process and returns its response. */
function ask<T>(child: ChildProcess, message: object | number): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once('message', message => resolve(message as T));
    child.once('error', reject);
    child.send(message);
  });
}

/** The URLs of the servers that are flooded. */
interface Target {
  readonly facade: string;
  readonly ingress: string;
}

/** Creates the workspaces of the neighbor, which publishes events to a stream that is delivered to its own endpoint. */
async function startNeighbour(target: Target): Promise<(target: Target) => Promise<void>> {
  neighbour = fork(new URL('./neighbour.ts', import.meta.url), { detached: true });
  const port = await new Promise(resolve => neighbour.once('message', resolve));
  if (neighbour.pid !== undefined) pinToData(neighbour.pid);
  const url = `http://127.0.0.1:${port}/`;
  const { cluster } = world.installation;
  const key = 'the-ingress-key-of-the-neighbour';
  await apply(cluster, [
    ...ownedTenant(world.issuer, 'shop', 'ada'),
    ...tenant('anna'),
    stream('shop', QUEUE),
    ingressKey('shop', key),
    integration('shop', 'anna'),
    subscription('anna', 'shop', QUEUE, { url }),
    activation('shop', 'anna', GROUP_KEY),
  ]);
  await waitForAll(cluster, 'activation', 'shop', 'Effective');
  await waitForAll(cluster, 'subscription', 'anna', 'Live');
  const settings = {
    eventsPath: `/events/${tenantId('shop')}/${QUEUE}`,
    ingressKey: key,
    groupKey: GROUP_KEY,
    token: await world.issuer.token({ sub: 'ada' }),
    tenant: tenantId('shop'),
    stream: QUEUE,
  };
  async function move({ facade, ingress }: Target): Promise<void> {
    neighbour.send({ ...settings, facadeUrl: facade, ingressUrl: ingress } satisfies NeighbourSettings);
    await ask<NeighbourFigures>(neighbour, FLOOD_MS);
  }
  await move(target);
  return move;
}

/** Starts an additional facade and ingress, which serve TLS. */
async function startSecure(folder: string): Promise<Target> {
  const { cert, key } = await (await createAuthority(folder)).issue('server', 'IP:127.0.0.1');
  const env = (role: string) => ({ ...LIMITS, [`SLUICE_${role}_CERT_FILE`]: cert, [`SLUICE_${role}_KEY_FILE`]: key });
  const [facade, ingress] = await Promise.all([
    world.start({ role: 'facade', env: env('FACADE') }),
    world.start({ role: 'ingress', env: env('INGRESS') }),
  ]);
  pinToData(ingress.pid);
  const secure = (url: string) => url.replace('http:', 'https:');
  return { facade: secure(facade.facadeUrl), ingress: secure(ingress.ingressUrl) };
}

/** Creates the objects of the attacker: one of each kind, large streams, and an endpoint that never responds. */
async function makeAttacker(both: Sluice): Promise<Attacker> {
  const specimens = await makeSpecimens(world, both, 'evil');
  const { producer, partner } = specimens;
  const { cluster } = world.installation;
  hanging = createServer(() => {}).listen(0, '127.0.0.1');
  await new Promise(resolve => hanging.once('listening', resolve));
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}/`;
  await apply(cluster, [
    stream(producer, 'hanging'),
    subscription(partner, producer, 'hanging', { url }),
    activation(producer, partner, GROUP_KEY),
  ]);
  const token = (sub: string) => world.issuer.token({ sub, groups: ['evil'] });
  const client = createRestClient(both.facadeUrl, await token('maker'));
  const payloadSchema = '"'.repeat(128 * 1_024);
  for (let n = 0; n < LARGE_STREAMS; n++) {
    const body = { producerTenantPublicId: specimens.ids['ten_'], name: `large-${n}`, isPublic: true, payloadSchema };
    const reply = await client.put('/waas/streams', body);
    expect(reply.status, `stream ${n}: ${JSON.stringify(reply.body)}`).toBe(200);
  }
  let callers = 0;
  return {
    ...specimens,
    ids: { ...specimens.ids, int_: publicId('Integration', producer, partner) },
    fullInbox: publicId('Subscription', partner, `${producer}-hanging`),
    ingressKey: 'the-ingress-key-of-evil',
    queue: 'hanging',
    groupKey: GROUP_KEY,
    token: () => token(`mallory-${callers++}`),
  };
}

/** Fills the stream of the attacker using an ingress without limits. */
async function fillStream(url: string, { ingressKey: key, queue, groupKey, ids }: Attacker): Promise<void> {
  const client = createClient(url, 16);
  const headers = {
    authorization: `Bearer ${key}`,
    'content-type': 'application/json',
    'x-sluice-group-key': groupKey,
    'x-forwarded-for': '198.51.100.7',
  };
  const sent = {
    method: 'POST',
    path: `/events/${ids['ten_']}/${queue}`,
    headers,
    body: JSON.stringify('x'.repeat(FULL.bytes)),
  };
  let left = FULL.events;
  const work = async () => {
    while (left-- > 0) expect(await client.send(sent)).toBe('202');
  };
  await Promise.all(Array.from({ length: 16 }, work));
  client.close();
}

beforeAll(async () => {
  world = await openFacadeWorld();
  folder = await temporaryFolder('hostile');
  await world.start({ role: 'controller' });
  const [facade, ingress, dispatcher] = await Promise.all([
    world.start({ role: 'facade', env: LIMITS }),
    world.start({ role: 'ingress', env: LIMITS }),
    world.start({ role: 'dispatcher' }),
  ]);
  pinToControl();
  for (const { pid } of [ingress, dispatcher, world.installation.redis]) pinToData(pid);
  let target: Target = { facade: facade.facadeUrl, ingress: ingress.ingressUrl };
  const moveNeighbour = await startNeighbour(target);
  attacking = fork(new URL('./attacker.ts', import.meta.url), { detached: true });
  const attacker = await makeAttacker({ ...facade, ingressUrl: ingress.ingressUrl });
  const unlimited = await world.start({ role: 'ingress' });
  await fillStream(unlimited.ingressUrl, attacker);
  await unlimited.stop();
  const document = (await (await fetch(`${facade.facadeUrl}/openapi.json`)).json()) as OpenApiDocument;
  const requests = [...(await specialFloods(attacker)), ...(await routeFloods(document, attacker))];
  const floods = [...requests, ...connectionFloods()];
  for (const flood of floods) {
    if (NAMES.length > 0 && !NAMES.includes(flood.name)) continue;
    const { requests, connections, manner = 'requests', leastMs = 0 } = flood;
    if (manner.endsWith('handshakes') && !target.facade.startsWith('https')) {
      target = await startSecure(folder.path);
      await moveNeighbour(target);
    }
    const forMs = Math.max(FLOOD_MS, leastMs);
    const quiet = await ask<NeighbourFigures>(neighbour, forMs);
    const attack: Attack = { url: target[flood.role], manner, requests, connections, forMs };
    const [answers, beside] = await Promise.all([
      ask<Answers>(attacking, attack),
      ask<NeighbourFigures>(neighbour, forMs),
    ]);
    const pair = { flood, answers, quiet, beside };
    pairs.push(pair);
    console.log(describePair(pair));
  }
  console.log(summary());
}, 1_800_000);

afterAll(async () => {
  attacking?.disconnect();
  neighbour?.disconnect();
  hanging?.closeAllConnections();
  hanging?.close();
  await world?.stop();
  await folder?.remove();
});

const ms = (value: number) => value.toFixed(1);

function describePair({ flood, answers, quiet, beside }: Pair): string {
  const sent = Object.values(answers).reduce((sum, each) => sum + each, 0);
  const figures = (['reads', 'changes', 'deliveries'] as const).map(
    name => `${name} p99 ${ms(quiet[name].p99)} -> ${ms(beside[name].p99)} ms`,
  );
  return `${flood.name} (${sent} answers: ${JSON.stringify(answers)}): ${figures.join(', ')}`;
}

/** The maximum p99 of the neighbor during a flood, in milliseconds. */
const GOALS = {
  reads: (quiet: number) => 2 * quiet + 20,
  changes: (quiet: number) => 2 * quiet + 20,
  deliveries: (quiet: number) => 1.1 * quiet,
};

/** Returns the medians of the neighbor's p99 before and during all floods, and the number of floods within the goal. */
function summary(): string {
  const of = (name: keyof typeof GOALS) => {
    const [before, beside] = [pairs.map(({ quiet }) => quiet[name].p99), pairs.map(pair => pair.beside[name].p99)];
    const ratio = median(pairs.map((pair, i) => (beside[i] ?? 0) / pair.quiet[name].p99));
    const met = pairs.filter((pair, i) => (beside[i] ?? 0) <= GOALS[name](pair.quiet[name].p99)).length;
    return `${name} ${ms(median(before))} -> ${ms(median(beside))} ms (${ratio.toFixed(2)}), ${met} within the goal`;
  };
  return `p99 right before a flood -> beside it, medians of ${pairs.length} pairs: ${of('reads')}; ${of('changes')}; ${of('deliveries')}`;
}

/** Responses to the neighbor which indicate a failed call. */
const failuresOf = ({ reads, changes, deliveries }: NeighbourFigures) =>
  [reads, changes, deliveries]
    .flatMap(({ answers }) => Object.keys(answers))
    .filter(answer => !/^20[02]$/.test(answer));

test('never refuses the neighbor, and delivers all of its events', () => {
  const noticed = pairs.flatMap(({ flood, beside }) => {
    const failures = failuresOf(beside);
    const missing = beside.missing > 0 ? [`${beside.missing} events missing`] : [];
    return failures.length + missing.length === 0 ? [] : [`${flood.name}: ${[...failures, ...missing].join(', ')}`];
  });
  expect(pairs.length).toBeGreaterThan(0);
  expect(noticed).toEqual([]);
});

test('limits each flood, and never responds with a server error', () => {
  const wrong = pairs.flatMap(({ flood, answers }) => {
    const failures = Object.keys(answers).filter(answer => answer.startsWith('5'));
    const unlimited = flood.limit === undefined || flood.limit in answers ? [] : [`no ${flood.limit}`];
    return [...failures, ...unlimited].map(each => `${flood.name}: ${each}`);
  });
  expect(wrong).toEqual([]);
});

import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { readInbox } from '../support/audit.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import { PRODUCER, QUEUE, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';
import { activation, apply, integration, kubectl, subscription, tenant } from '../support/world.ts';

/** Notations of an endpoint on this machine. `refused` is detected without querying a name server. */
const DISGUISES: readonly { readonly partner: string; readonly host: string; readonly refused: boolean }[] = [
  { partner: 'plain', host: '127.0.0.1', refused: true },
  { partner: 'short', host: '127.1', refused: true },
  { partner: 'number', host: '2130706433', refused: true },
  { partner: 'hex', host: '0x7f000001', refused: true },
  { partner: 'octal', host: '0177.0.0.1', refused: true },
  { partner: 'mapped', host: '[::ffff:127.0.0.1]', refused: true },
  { partner: 'six', host: '[::1]', refused: true },
  { partner: 'zero', host: '0.0.0.0', refused: true },
  { partner: 'name', host: 'localhost', refused: false },
];

let installed: Installation;
let sluice: Sluice;
let world: Running;
let publisher: Publisher;
let listener: Server;
let connections = 0;
let port = 0;

beforeAll(async () => {
  // The server listens on all addresses of this machine, using IPv4 and IPv6.
  listener = createServer(socket => {
    connections++;
    socket.on('error', () => {});
    socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
  });
  await new Promise<void>(resolve => listener.listen(0, '::', resolve));
  port = (listener.address() as AddressInfo).port;
  installed = await install();
  sluice = await installed.start({ env: { SLUICE_ALLOWED_NETWORKS: '' } });
  world = await settle(installed, { partners: [], groupKeys: [] });
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
  listener?.close();
});

const live = (partner: string) => world.observer.conditionOf('Subscription', SUBSCRIPTION, partner, 'Live');

it('never connects to an address of this machine in any notation', async () => {
  const { cluster } = installed;
  for (const scheme of ['https', 'http']) {
    const partners = DISGUISES.map(({ partner, host }) => ({ name: `${partner}-${scheme}`, host }));
    await apply(
      cluster,
      partners.flatMap(({ name, host }) => [
        ...tenant(name),
        integration(PRODUCER, name),
        activation(PRODUCER, name, 'key'),
        subscription(name, PRODUCER, QUEUE, { url: `${scheme}://${host}:${port}/`, retrySchedule: ['200ms', '200ms'] }),
      ]),
    );
  }
  publisher = world.publisherOf(sluice);
  for (const { partner, refused } of DISGUISES) {
    const { observer } = world;
    await observer.until(['Subscription', SUBSCRIPTION, `${partner}-http`, 'Live', 'False/EndpointRefused']);
    // A host name is checked when connecting because its address is not known before.
    const expected = refused ? 'False/EndpointRefused' : 'True/Live';
    await observer.until(['Subscription', SUBSCRIPTION, `${partner}-https`, 'Live', expected]);
    for (const scheme of ['http', 'https']) {
      const { name } = activation(PRODUCER, `${partner}-${scheme}`, 'key').metadata;
      await observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing']);
    }
  }
  expect((await publisher.post(makeSample('secret.0', 'key', 'x'))).status).toBe(202);
  const inbox = (partner: string) => readInbox(installed, { producer: PRODUCER, partner, name: SUBSCRIPTION });
  await eventually(
    'all attempts for the host name have failed',
    async () => (await inbox('name-https')).counters['dead'] === 1,
  );
  await delay(1_000);
  expect(connections).toBe(0);
  expect(await sluice.metric('sluice_dispatcher_attempts_total', { reason: 'address_refused' })).toBe(3);
  // Refused endpoints keep their events.
  expect(await inbox('plain-https')).toMatchObject({ open: 1, counters: { routed: 1 } });
  const message = '{.status.conditions[?(@.type=="Live")].message}';
  console.log(
    await kubectl(cluster, ['get', `subscription/${SUBSCRIPTION}`, '-n', 'plain-https', '-o', `jsonpath=${message}`]),
  );
});

it('connects and delivers the stored events when the operator allows the network', async () => {
  await sluice.stop();
  sluice = await installed.start({ env: { SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8' } });
  const { tookMs } = await eventually(
    'the subscription is live',
    async () => (await live('plain-http')) === 'True/Live',
  );
  await eventually('there is a connection', async () => connections > 0);
  const inbox = () => readInbox(installed, { producer: PRODUCER, partner: 'plain-http', name: SUBSCRIPTION });
  await eventually('the event is delivered', async () => (await inbox()).counters['delivered'] === 1);
  console.log(`allowed: live ${Math.round(tookMs)} ms after the restart`);
  // Only this network is allowed. All others are still refused.
  expect([await live('six-https'), await live('zero-https'), await live('name-http')]).toEqual(
    Array.from({ length: 3 }, () => 'False/EndpointRefused'),
  );
});

it('refuses a network and a port of the operator, even if they are allowed', async () => {
  const message = async () => {
    const path = '{.status.conditions[?(@.type=="Live")].message}';
    const args = ['get', `subscription/${SUBSCRIPTION}`, '-n', 'plain-http', '-o', `jsonpath=${path}`];
    return kubectl(installed.cluster, args);
  };
  await sluice.stop();
  const heard = connections;
  for (const [variables, words] of [
    [{ SLUICE_REFUSED_NETWORKS: '127.0.0.1/32' }, 'SLUICE_REFUSED_NETWORKS'],
    [{ SLUICE_ALLOWED_PORTS: '443,8443' }, 'SLUICE_ALLOWED_PORTS'],
  ] as const) {
    sluice = await installed.start({ env: { SLUICE_ALLOWED_NETWORKS: '127.0.0.0/8', ...variables } });
    await eventually('the status contains the setting', async () => (await message()).includes(words));
    expect(await live('plain-http')).toBe('False/EndpointRefused');
    if (words === 'SLUICE_REFUSED_NETWORKS') await sluice.stop();
  }
  expect((await world.publisherOf(sluice).post(makeSample('secret.1', 'key', 'x'))).status).toBe(202);
  const inbox = () => readInbox(installed, { producer: PRODUCER, partner: 'plain-http', name: SUBSCRIPTION });
  await eventually('the event is routed', async () => (await inbox()).counters['routed'] === 2);
  await delay(1_000);
  expect(connections).toBe(heard);
});

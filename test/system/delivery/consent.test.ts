import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';
import { activation, apply, integration, kubectl, subscription, tenant } from '../support/world.ts';

const ORIGIN = 'events.sluice.test';
const PARTNERS = ['agrees', 'refuses', 'hangs'] as const;
const EVENTS = 20;
const retrySchedule = Array.from({ length: 16 }, () => '1s');

let installed: Installation;
let sluice: Sluice;
let world: Running;
let endpoint: Server;
/** The method and path of each request, in the order of arrival. */
const requests: string[] = [];
const origins = new Set<unknown>();

function answer({ method = '', url = '', headers }: IncomingMessage, response: ServerResponse): void {
  requests.push(`${method} ${url}`);
  if (method !== 'OPTIONS') return void response.writeHead(204).end();
  origins.add(headers['webhook-request-origin']);
  if (url.startsWith('/hangs')) return;
  if (url.startsWith('/refuses')) return void response.writeHead(200, { allow: 'OPTIONS, POST' }).end();
  response.writeHead(200, { 'webhook-allowed-origin': ORIGIN }).end();
}

const count = (request: string) => requests.filter(each => each === request).length;

async function subscribe(partner: string, path: string): Promise<void> {
  const { port } = endpoint.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/${path}`;
  // On a busy machine, other requests that time out would be repeated.
  const timeoutSeconds = path === 'hangs' ? 2 : 20;
  await apply(installed.cluster, [subscription(partner, PRODUCER, QUEUE, { url, retrySchedule, timeoutSeconds })]);
}

beforeAll(async () => {
  endpoint = createServer(answer);
  await new Promise<void>(resolve => {
    endpoint.listen(0, '127.0.0.1', resolve);
  });
  installed = await install();
  sluice = await installed.start({ env: { SLUICE_ENDPOINT_CONSENT_ORIGIN: ORIGIN } });
  world = await settle(installed, { partners: [], groupKeys: [] });
  for (const partner of PARTNERS) {
    await apply(installed.cluster, [
      ...tenant(partner),
      integration(PRODUCER, partner),
      activation(PRODUCER, partner, 'key'),
    ]);
    await subscribe(partner, partner);
    await world.observer.until(['Subscription', SUBSCRIPTION, partner, 'Live', 'True/Live']);
    const { name } = activation(PRODUCER, partner, 'key').metadata;
    await world.observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing']);
  }
});

afterAll(async () => {
  endpoint?.closeAllConnections();
  endpoint?.close();
  await world?.close();
  await installed?.stop();
});

it('only sends events to the endpoint that agrees', async () => {
  const publisher = world.publisherOf(sluice);
  for (let i = 0; i < EVENTS; i++) {
    expect((await publisher.post(makeSample(`event.${i}`, 'key', 'x'))).status).toBe(202);
  }
  await eventually('all events are delivered', async () => count('POST /agrees') === EVENTS);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'refuses', 'Live', 'False/WaitingForConsent']);
  await eventually(
    'the endpoint that does not respond has received two requests',
    async () => count('OPTIONS /hangs') >= 2,
  );
  expect(requests.filter(each => /^POST \/(refuses|hangs)/.test(each))).toEqual([]);
  expect([count('OPTIONS /agrees'), count('OPTIONS /refuses')]).toEqual([1, 1]);
  expect([...origins]).toEqual([ORIGIN]);
  const path = '{.status.conditions[?(@.type=="Live")].message} {.status.delivery.lastAttempt}';
  const readStatus = () =>
    kubectl(installed.cluster, ['get', `subscription/${SUBSCRIPTION}`, '-n', 'refuses', '-o', `jsonpath=${path}`]);
  // The last attempt is written separately.
  await expect.poll(readStatus, { timeout: 60_000 }).toMatch(/WebHook-Allowed-Origin.* ConsentMissing$/);
});

it('sends the stored events when the endpoint agrees', async () => {
  await subscribe('refuses', 'agrees-now');
  await eventually('all events are delivered', async () => count('POST /agrees-now') === EVENTS);
  await world.observer.until(['Subscription', SUBSCRIPTION, 'refuses', 'Live', 'True/Live']);
  expect([count('OPTIONS /agrees-now'), count('POST /refuses')]).toEqual([1, 0]);
});

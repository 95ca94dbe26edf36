import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type KubeClient } from '../../src/kube/client.ts';
import { resourceOf } from '../../src/kube/resource.ts';
import { eventually } from '../system/support/deadline.ts';
import { makeSample } from '../system/support/publisher.ts';
import { PRODUCER } from '../system/support/small-world.ts';
import { useSmallWorld } from '../system/support/use-small-world.ts';
import { createAll, type Wanted } from './population.ts';

/** The number of streams that drain at the same time. */
const STREAMS = 500 * Number(process.env.SCALE ?? 1);
const WATCHED_MS = 20_000;

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });
const names = Array.from({ length: STREAMS }, (_, n) => `drained-${n}`);
let client: KubeClient;

beforeAll(() => {
  client = connect({ kubeconfig: world.cluster.kubeconfig });
});

afterAll(async () => {
  await client?.close();
});

/** Returns the number of draining streams. */
async function drainingCount(): Promise<number> {
  type Stream = { metadata: never; status?: { conditions?: { type: string; reason: string }[] } };
  const isDraining = ({ status }: Stream) =>
    status?.conditions?.some(({ type, reason }) => type === 'Ready' && reason === 'Draining') === true;
  const { items } = await client.list(resourceOf('CatalogStream'), isDraining, { namespace: PRODUCER });
  return items.filter(Boolean).length;
}

/** Returns the number of requests sent to the API server within `WATCHED_MS`. */
async function countRequests(): Promise<number> {
  const before = await world.sluice.metric('rest_client_requests_total');
  await delay(WATCHED_MS);
  return (await world.sluice.metric('rest_client_requests_total')) - before;
}

it(`sends almost no requests to the API server while ${STREAMS} streams drain`, { timeout: 300_000 }, async () => {
  const objects = names.flatMap((name): Wanted[] => [
    { kind: 'CatalogStream', namespace: PRODUCER, name, spec: { public: true } },
    // Without an endpoint, the events wait until they are pulled.
    {
      kind: 'Subscription',
      namespace: 'ada',
      name: `${PRODUCER}-${name}`,
      spec: { producer: PRODUCER, integration: 'ada', stream: name },
    },
  ]);
  await createAll(client, objects);
  for (const name of names) {
    await world.observer.until(['Subscription', `${PRODUCER}-${name}`, 'ada', 'Live', 'True/Live'], 120_000);
    const { status } = await world.publisher.post(makeSample(name, 'key', name), { queue: name });
    expect(status).toBe(202);
  }
  const idle = await countRequests();
  for (const name of names) await world.observer.remove('CatalogStream', name, PRODUCER);
  await eventually('all streams are draining', async () => (await drainingCount()) === STREAMS);
  const draining = await countRequests();
  console.log(`${STREAMS} streams drain: ${draining} requests in ${WATCHED_MS / 1_000} s, ${idle} before`);
  expect(draining - idle).toBeLessThan((10 * WATCHED_MS * STREAMS) / 500 / 1_000);
  // The controller still reconciles these streams.
  expect(await drainingCount()).toBe(STREAMS);
});

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import { faultsOf } from '../support/audit.ts';
import { eventually, spread } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { countStatuses, makeSamples, type Publisher } from '../support/publisher.ts';
import { PRODUCER, type Running, settle } from '../support/small-world.ts';
import { activation } from '../support/world.ts';

const GROUP_KEYS = ['red', 'green', 'blue'];

let installed: Installation;
let sluice: Sluice;
let world: Running;
let publisher: Publisher;

beforeAll(async () => {
  installed = await install();
  sluice = await installed.start();
  world = await settle(installed, { partners: ['ada', 'bob'], groupKeys: GROUP_KEYS });
  publisher = world.publisherOf(sluice);
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

async function flows(prefix: string, through = publisher): Promise<number[]> {
  const { receiver } = world;
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: 50, prefix });
  const published = await through.publishAll(samples);
  expect(countStatuses(published.values())).toEqual({ 202: samples.length });
  for (const partner of ['ada', 'bob']) {
    const all = async () => samples.every(({ id }) => receiver.delivered(partner).has(id));
    await eventually('every delivery', all, { withinMs: 15_000 });
    const ofThis = receiver.attempts.filter(({ id }) => id.startsWith(prefix));
    expect(faultsOf({ ...receiver, attempts: ofThis }, partner, samples)).toEqual([]);
  }
  return receiver.attempts.flatMap(({ id, atMs }) => {
    const publication = published.get(id);
    return publication === undefined ? [] : [atMs - publication.answeredMs];
  });
}

it('lets events flow while the API server is away, also through a process that starts then', async () => {
  const { pid } = sluice;
  await installed.cluster.killApiServer();
  console.log(`without an API server: from 202 to arrival ${spread(await flows('away-'))}`);
  // Longer than the lease: nothing of the controller's loss may reach the data plane.
  await delay(16_000);
  console.log(`16 s later: from 202 to arrival ${spread(await flows('later-'))}`);
  const late = await installed.start({ role: 'ingress', kubeconfig: '/nowhere' });
  await flows('late-', world.publisherOf(late));
  await late.stop();
  await installed.cluster.startApiServer();
  expect([sluice.running(), sluice.pid]).toEqual([true, pid]);
});

it('comes back by itself each time that the API server was killed', async () => {
  const { observer } = world;
  const { pid } = sluice;
  const recovered: number[] = [];
  for (const [round, downMs] of [0, 500, 3_000, 12_000, 0].entries()) {
    await installed.cluster.killApiServer();
    await delay(downMs);
    await installed.cluster.startApiServer();
    const groupKey = `round-${round}`;
    const startedMs = performance.now();
    await eventually(
      'the activation is taken',
      async () => observer.apply(activation(PRODUCER, 'ada', groupKey)).then(() => true),
      {
        withinMs: 20_000,
      },
    );
    const { name } = activation(PRODUCER, 'ada', groupKey).metadata;
    await observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing'], 60_000);
    recovered.push(performance.now() - startedMs);
    const [sample] = makeSamples({ groupKeys: [groupKey], perKey: 1 });
    if (sample === undefined) throw new Error('no sample');
    await publisher.publish(sample);
    await eventually('it is delivered', async () => world.receiver.delivered('ada').has(sample.id), {
      withinMs: 5_000,
    });
  }
  console.log(`effective after the API server is ready again: ${recovered.map(ms => Math.round(ms)).join(', ')} ms`);
  expect(Math.max(...recovered)).toBeLessThan(30_000);
  expect([sluice.running(), sluice.pid]).toEqual([true, pid]);
});

import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { faultsOf } from '../support/audit.ts';
import { eventually, spread } from '../support/deadline.ts';
import { countStatuses, makeSamples } from '../support/publisher.ts';
import { PRODUCER } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation } from '../support/world.ts';

const GROUP_KEYS = ['red', 'green', 'blue'];

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: GROUP_KEYS });

async function flows(prefix: string, through = world.publisher): Promise<number[]> {
  const { receiver } = world;
  const samples = makeSamples({ groupKeys: GROUP_KEYS, perKey: 50, prefix });
  const published = await through.publishAll(samples);
  expect(countStatuses(published.values())).toEqual({ 202: samples.length });
  for (const partner of ['ada', 'bob']) {
    const all = async () => samples.every(({ id }) => receiver.delivered(partner).has(id));
    await eventually('all events are delivered', all);
    const ofThis = receiver.attempts.filter(({ id }) => id.startsWith(prefix));
    expect(faultsOf({ ...receiver, attempts: ofThis }, partner, samples)).toEqual([]);
  }
  return receiver.attempts.flatMap(({ id, atMs }) => {
    const publication = published.get(id);
    return publication === undefined ? [] : [atMs - publication.answeredMs];
  });
}

it('routes events while the API server is not available, including with a new process', async () => {
  const { pid } = world.sluice;
  await world.cluster.killApiServer();
  console.log(`without an API server: from 202 to arrival ${spread(await flows('away-'))}`);
  // This is longer than the lease. The data plane must not be affected when the controller loses its lease.
  await delay(16_000);
  console.log(`16 s later: from 202 to arrival ${spread(await flows('later-'))}`);
  const late = await world.start({ role: 'ingress', kubeconfig: '/nowhere' });
  await flows('late-', world.publisherOf(late));
  await late.stop();
  await world.cluster.startApiServer();
  expect([world.sluice.running(), world.sluice.pid]).toEqual([true, pid]);
});

it('recovers each time the API server is killed', async () => {
  const { observer } = world;
  const { pid } = world.sluice;
  const recovered: number[] = [];
  for (const [round, downMs] of [0, 500, 3_000, 12_000, 0].entries()) {
    await world.cluster.killApiServer();
    await delay(downMs);
    await world.cluster.startApiServer();
    const groupKey = `round-${round}`;
    const startedMs = performance.now();
    await eventually('the activation is accepted', async () =>
      observer.apply(activation(PRODUCER, 'ada', groupKey)).then(() => true),
    );
    const { name } = activation(PRODUCER, 'ada', groupKey).metadata;
    await observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing'], 90_000);
    recovered.push(performance.now() - startedMs);
    const [sample] = makeSamples({ groupKeys: [groupKey], perKey: 1 });
    if (sample === undefined) throw new Error('the sample is missing');
    await world.publisher.publish(sample);
    await world.receiver.arrival(sample.id, 'ada');
  }
  console.log(`effective after the API server is ready again: ${recovered.map(ms => Math.round(ms)).join(', ')} ms`);
  expect([world.sluice.running(), world.sluice.pid]).toEqual([true, pid]);
});

import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { untilCalm } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, block, stream } from '../support/world.ts';

/**
 * This is long enough for delays that double without a limit to reach several minutes, and shorter than the minute
 * after which workspaces report the outage.
 */
const AWAY_MS = 50_000;
/** This is shorter than the delays that double without a limit. */
const APPLIED_WITHIN_MS = 30_000;
/** The time after which a workspace reports the outage. */
const REPORTED_MS = 60_000;

/** Objects that are not changed while Redis is unavailable, and whose effect does not change. */
const APPLIED = [
  ['Account', PRODUCER, undefined],
  ['Integration', 'ada', PRODUCER],
  ['Integration', 'bob', PRODUCER],
  ['Subscription', SUBSCRIPTION, 'ada'],
  ['Activation', activation(PRODUCER, 'ada', 'old').metadata.name, PRODUCER],
] as const;

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: ['old', 'closing'] });

it('applies the changes made while Redis was unavailable within seconds', async () => {
  const { observer, receiver } = world;
  const nameOf = (groupKey: string) => activation(PRODUCER, 'ada', groupKey).metadata.name;
  const versions = () =>
    Promise.all(
      APPLIED.map(async ([kind, name, namespace]) => [kind, name, await observer.versionOf(kind, name, namespace)]),
    );
  await untilCalm(async () => JSON.stringify(await versions()));
  const before = await versions();
  const workspaceBefore = await observer.versionOf('Workspace', PRODUCER);
  await world.redis.kill('SIGKILL');
  const killedMs = performance.now();
  await observer.apply(activation(PRODUCER, 'ada', 'new'));
  await observer.apply(activation(PRODUCER, 'ada', 'closing', { revoked: true }));
  await observer.apply(stream(PRODUCER, QUEUE, { eventTypes: ['order.created'] }));
  await observer.apply(
    block(PRODUCER, 'no-bob', { integration: 'bob', target: { kind: 'CatalogStream', name: QUEUE } }),
  );
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', 'False/RedisUnavailable']);
  await observer.until(['Activation', nameOf('new'), PRODUCER, 'Ready', 'False/RedisUnavailable']);
  await delay(AWAY_MS - (performance.now() - killedMs));
  const workspace = await observer.versionOf('Workspace', PRODUCER);
  // On a busy machine, the minute may have ended.
  if (performance.now() - killedMs < REPORTED_MS) expect(workspace).toBe(workspaceBefore);
  await observer.until(['Workspace', PRODUCER, undefined, 'DataPlaneReachable', 'False/RedisUnavailable']);
  expect(await observer.conditionOf('Workspace', PRODUCER)).toBe('True/NamespaceReady');
  await world.redis.restart();
  const until = (...what: Parameters<typeof observer.until>[0]) => observer.until(what, APPLIED_WITHIN_MS);
  const took = {
    opened: until('Activation', nameOf('new'), PRODUCER, 'Effective', 'True/Routing'),
    closed: until('Activation', nameOf('closing'), PRODUCER, 'Effective', 'False/Revoked'),
    stream: until('CatalogStream', QUEUE, PRODUCER, 'Ready', 'True/QueueReady'),
    reachable: until('Workspace', PRODUCER, undefined, 'DataPlaneReachable', 'True/RedisAnswers'),
    blocked: until('Subscription', SUBSCRIPTION, 'bob', 'Live', 'False/Blocked'),
  };
  for (const [what, ms] of Object.entries(took))
    console.log(`${what}: ${Math.round(await ms)} ms after Redis is available again`);

  // Applied objects remain applied. An outage does not cause any writes, neither at its start nor at its end.
  expect(await versions()).toEqual(before);

  const typed = { headers: { 'ce-type': 'order.created' } };
  await eventually(
    'ingress accepts events',
    async () => (await world.publisher.post(makeSample('back', 'old', 'x'), typed)).status < 500,
  );
  for (const key of ['new', 'closing', 'old']) {
    const answer = await world.publisher.post(makeSample(`${key}.0`, key, 'x'), typed);
    expect(answer.status).toBe(202);
  }
  expect(
    (await world.publisher.post(makeSample('typeless', 'old', 'x'), { headers: { 'ce-type': 'other' } })).status,
  ).toBe(422);
  for (const id of ['new.0', 'old.0']) await receiver.arrival(id, 'ada');
  await delay(500);
  expect([...receiver.delivered('ada')].toSorted()).toEqual(['back', 'new.0', 'old.0']);
  expect([...receiver.delivered('bob')]).toEqual([]);
});

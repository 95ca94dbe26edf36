import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { PAUSED_ANNOTATION } from '../../../src/api/well-known.ts';
import { publicId } from '../../../src/core/ids/ids.ts';
import { integrationKeys } from '../../../src/redis/keys.ts';
import { untilCalm, writesOf } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { leads } from '../support/leading.ts';
import { OURS, versionLines } from '../support/listed.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, block, integration, kubectl, pkg, stream, subscription } from '../support/world.ts';

const KEY = 'key';
const LATER = 'later';
const PAUSED = 'Unknown/WorkspacePaused';
const BLOCK = { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } };

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: [KEY] });

const pause = (value: 'true' | 'false') =>
  kubectl(world.cluster, ['annotate', '--overwrite', 'workspace', PRODUCER, `${PAUSED_ANNOTATION}=${value}`]);

let probes = 0;
/** Waits until the controller has detected the pause, which affects a new Package. */
async function untilPaused(): Promise<void> {
  const { observer } = world;
  const isPaused = async () => {
    const name = `probe-${++probes}`;
    await observer.apply(pkg(PRODUCER, name, []));
    const judged = () => observer.conditionOf('Package', name, PRODUCER).then(is => is || undefined);
    return (await eventually(`${name} is reconciled`, judged)).value === PAUSED;
  };
  await eventually('the controller has seen the pause', isPaused);
}

const send = async (id: string, groupKey = KEY) =>
  expect((await world.publisher.post(makeSample(id, groupKey, id))).status).toBe(202);
const attemptsOf = (id: string, at: string) =>
  world.receiver.attempts.filter(attempt => attempt.id === id && attempt.subscription === at);
/** Excludes the Workspace because its annotation is changed. */
const NAMESPACED = OURS.filter(({ namespaced }) => namespaced);
const versions = async () => (await versionLines(world.cluster, NAMESPACED)).join('\n');
const redisChanges = () => writesOf(world.redis);

it('continues to route events, and holds all changes that do not close anything until the pause ends', async () => {
  const { observer, receiver } = world;
  const opened = activation(PRODUCER, 'ada', LATER);
  await untilCalm(versions);
  const unpaused = await versions();
  await pause('true');
  await delay(1_000);
  expect(await versions()).toBe(unpaused);
  await untilPaused();
  await observer.apply(pkg(PRODUCER, 'new', [QUEUE]));
  await observer.apply(stream(PRODUCER, QUEUE, { public: false }));
  await observer.apply(opened);
  await observer.apply(subscription('bob', PRODUCER, QUEUE, { url: receiver.urlOf('elsewhere') }, { suspended: true }));
  const changed = [
    ['Package', 'new', PRODUCER],
    ['CatalogStream', QUEUE, PRODUCER],
    ['Activation', opened.metadata.name, PRODUCER],
    ['Subscription', SUBSCRIPTION, 'bob'],
  ] as const;
  for (const object of changed) await observer.until([...object, 'Ready', PAUSED]);
  expect(await observer.conditionOf('Subscription', SUBSCRIPTION, 'ada', 'Live')).toBe('True/Live');

  await send('flows.0');
  await send('later.0', LATER);
  for (const partner of ['ada', 'bob']) await world.receiver.arrival('flows.0', partner);
  expect(attemptsOf('later.0', 'ada')).toEqual([]);

  await untilCalm(redisChanges);
  const before = { versions: await versions(), redis: await redisChanges() };
  await delay(10_000);
  expect({ versions: await versions(), redis: await redisChanges() }).toEqual(before);

  await pause('false');
  await observer.until(['Package', 'new', PRODUCER, 'Ready', 'True/Compiled']);
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Published', 'False/Deprecated']);
  await observer.until(['Activation', opened.metadata.name, PRODUCER, 'Effective', 'True/Routing']);
  await observer.until(['Subscription', SUBSCRIPTION, 'bob', 'Live', 'False/Suspended']);
  await send('later.1', LATER);
  await world.receiver.arrival('later.1', 'ada');
});

it('applies closing changes immediately, and opening changes after the pause', async () => {
  const { observer, receiver } = world;
  const gates = ['revoked', 'deleted', 'reopened', 'kept'];
  for (const gate of gates) await observer.apply(activation(PRODUCER, 'ada', gate));
  await observer.apply(subscription('bob', PRODUCER, QUEUE, { url: receiver.urlOf('bob') }));
  for (const gate of gates) {
    await observer.until([
      'Activation',
      activation(PRODUCER, 'ada', gate).metadata.name,
      PRODUCER,
      'Effective',
      'True/Routing',
    ]);
  }
  await observer.until(['Subscription', SUBSCRIPTION, 'bob', 'Live', 'True/Live']);
  await pause('true');
  await untilPaused();
  const activationOf = (gate: string, revoked: boolean) =>
    activation(PRODUCER, 'ada', gate, revoked ? { revoked } : {});
  await observer.apply(activationOf('revoked', true));
  await observer.apply(activationOf('reopened', true));
  await observer.remove('Activation', activationOf('deleted', false).metadata.name, PRODUCER);
  for (const gate of ['revoked', 'reopened']) {
    await observer.until([
      'Activation',
      activationOf(gate, true).metadata.name,
      PRODUCER,
      'Effective',
      'False/Revoked',
    ]);
  }
  await observer.apply(activationOf('reopened', false));
  await observer.until(['Activation', activationOf('reopened', false).metadata.name, PRODUCER, 'Ready', PAUSED]);
  // An object is deleted before its gate is closed.
  const { act } = integrationKeys(publicId('Integration', PRODUCER, 'ada'));
  const isClosed = async () => (await world.redis.command('HEXISTS', act, 'deleted')) === 0;
  await eventually('the gate of the deleted activation is closed', isClosed);
  for (const gate of ['revoked', 'deleted', 'reopened']) await send(`closed.${gate}`, gate);
  await send('flows.kept', 'kept');
  await world.receiver.arrival('flows.kept', 'ada');
  for (const gate of ['revoked', 'deleted', 'reopened']) expect(attemptsOf(`closed.${gate}`, 'ada')).toEqual([]);

  await observer.apply(block(PRODUCER, 'no-ada', BLOCK));
  await observer.until(['Block', 'no-ada', PRODUCER, 'Enforced', 'True/Enforced']);
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']);
  await observer.remove('Block', 'no-ada', PRODUCER);
  await observer.remove('Subscription', SUBSCRIPTION, 'bob');
  await observer.untilGone(['Subscription', SUBSCRIPTION, 'bob']);
  await send('blocked.0', 'kept');
  await delay(2_000);
  expect(attemptsOf('blocked.0', 'ada')).toEqual([]);
  // A new leader has the same state. It leads when the lease of the killed leader has expired.
  await world.sluice.restart();
  await eventually('a new leader leads', () => leads(world.sluice));
  await send('blocked.1', 'kept');
  await delay(3_000);
  expect(attemptsOf('blocked.1', 'ada')).toEqual([]);

  await pause('false');
  for (const id of ['blocked.0', 'blocked.1']) await world.receiver.arrival(id, 'ada');
  await send('after.reopened', 'reopened');
  await world.receiver.arrival('after.reopened', 'ada');
  for (const gate of ['revoked', 'deleted']) expect(attemptsOf(`closed.${gate}`, 'ada')).toEqual([]);
});

it('ends an integration immediately', async () => {
  const { observer } = world;
  await pause('true');
  await untilPaused();
  await observer.apply(integration(PRODUCER, 'bob', { workspace: 'bob', revoked: true }));
  await observer.until(['Integration', 'bob', PRODUCER, 'Accepted', 'False/Revoked']);
  await pause('false');
});

it('does not restore a Redis that has lost its data until the pause ends, and does not accept or route events in the meantime', async () => {
  const { observer } = world;
  await pause('true');
  await untilPaused();
  await world.redis.command('FLUSHALL');
  const answer = async () => (await world.publisher.post(makeSample(`lost.${Math.random()}`, LATER, 'x'))).status;
  await eventually('ingress refuses events', async () => (await answer()) === 503);
  await observer.untilEvent(`Workspace/${PRODUCER} ControlStateRebuilt`);
  await delay(3_000);
  expect(await answer()).toBe(503);
  await world.sluice.restart();
  await delay(2_000);
  expect(await answer()).toBe(503);
  await pause('false');
  // The new process leads when the Lease of the killed one has ended.
  await eventually('ingress accepts events', async () => (await answer()) === 202, { withinMs: 120_000 });
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await send('rebuilt.0', LATER);
  await world.receiver.arrival('rebuilt.0', 'ada');
});

it('holds a deletion for at most one minute', async () => {
  const { observer } = world;
  await pause('true');
  await untilPaused();
  const startedMs = performance.now();
  await observer.remove('CatalogStream', QUEUE, PRODUCER);
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', PAUSED]);
  await observer.untilGone(['CatalogStream', QUEUE, PRODUCER], 90_000);
  expect(performance.now() - startedMs).toBeGreaterThan(55_000);
  await observer.untilEvent(`CatalogStream/${QUEUE} FinalizerRemovedWhilePaused`);
  await pause('false');
  const refused = async () => (await world.publisher.post(makeSample('gone.0', LATER, 'x'))).body.code;
  await eventually('the queue does not accept more events', async () => (await refused()) === 'stream_closing');
});

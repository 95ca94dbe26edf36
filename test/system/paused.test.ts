import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PAUSED_ANNOTATION } from '../../src/api/well-known.ts';
import type { Sluice } from '../support/sluice.ts';
import { untilCalm } from './calm.ts';
import { eventually } from './deadline.ts';
import { type Installation, install } from './installation.ts';
import { makeSample, type Publisher } from './publisher.ts';
import { PRODUCER, QUEUE, type Running, SUBSCRIPTION, settle } from './small-world.ts';
import { activation, block, kubectl, pkg, stream, subscription } from './world.ts';

const KEY = 'key';
const LATER = 'later';
const PAUSED = 'Unknown/WorkspacePaused';
const BLOCK = { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } };

let installed: Installation;
let sluice: Sluice;
let world: Running;
let publisher: Publisher;

beforeAll(async () => {
  installed = await install();
  sluice = await installed.start();
  world = await settle(installed, { partners: ['ada', 'bob'], groupKeys: [KEY] });
  publisher = world.publisherOf(sluice);
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
});

const pause = (value: 'true' | 'false') =>
  kubectl(installed.cluster, ['annotate', '--overwrite', 'workspace', PRODUCER, `${PAUSED_ANNOTATION}=${value}`]);
const send = async (id: string, groupKey = KEY) =>
  expect((await publisher.post(makeSample(id, groupKey, id))).status).toBe(202);
const arrived = (id: string, at: string) =>
  eventually(`${id} arrives at ${at}`, async () => world.receiver.delivered(at).has(id), { withinMs: 15_000 });
const attemptsOf = (id: string, at: string) =>
  world.receiver.attempts.filter(attempt => attempt.id === id && attempt.subscription === at);
const versions = () =>
  kubectl(installed.cluster, [
    'get',
    'waas',
    '-A',
    '-o',
    'jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}',
  ]);
const redisChanges = async () =>
  /rdb_changes_since_last_save:(\d+)/.exec(String(await installed.redis.command('INFO', 'persistence')))?.[1];

it('lets data flow, and holds every change until it is over', async () => {
  const { observer, receiver } = world;
  const opened = activation(PRODUCER, 'ada', LATER);
  const closed = activation(PRODUCER, 'bob', KEY, { revoked: true });
  const unpaused = await versions();
  await pause('true');
  await delay(1_000);
  expect(await versions()).toBe(unpaused);
  await observer.apply(block(PRODUCER, 'no-ada', BLOCK));
  await observer.apply(pkg(PRODUCER, 'new', [QUEUE]));
  await observer.apply(stream(PRODUCER, QUEUE, { public: false }));
  await observer.apply(opened);
  await observer.apply(closed);
  await observer.apply(subscription('bob', PRODUCER, QUEUE, { url: receiver.urlOf('elsewhere') }, { suspended: true }));
  const changed = [
    ['Block', 'no-ada', PRODUCER],
    ['Package', 'new', PRODUCER],
    ['CatalogStream', QUEUE, PRODUCER],
    ['Activation', opened.metadata.name, PRODUCER],
    ['Activation', closed.metadata.name, PRODUCER],
    ['Subscription', SUBSCRIPTION, 'bob'],
  ] as const;
  for (const object of changed) await observer.until([...object, 'Ready', PAUSED]);
  expect(await observer.conditionOf('Subscription', SUBSCRIPTION, 'ada', 'Live')).toBe('True/Live');

  // A deletion waits, too, and says so.
  await observer.remove('Activation', activation(PRODUCER, 'ada', KEY).metadata.name, PRODUCER);
  await send('flows.0');
  await send('later.0', LATER);
  for (const partner of ['ada', 'bob']) await arrived('flows.0', partner);
  expect(attemptsOf('later.0', 'ada')).toEqual([]);

  await untilCalm(redisChanges);
  const before = { versions: await versions(), redis: await redisChanges() };
  await delay(10_000);
  expect({ versions: await versions(), redis: await redisChanges() }).toEqual(before);

  await pause('false');
  await observer.until(['Block', 'no-ada', PRODUCER, 'Enforced', 'True/Enforced']);
  await observer.until(['Package', 'new', PRODUCER, 'Ready', 'True/Compiled']);
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Published', 'False/Deprecated']);
  await observer.until(['Activation', opened.metadata.name, PRODUCER, 'Effective', 'True/Routing']);
  await observer.until(['Activation', closed.metadata.name, PRODUCER, 'Effective', 'False/Revoked']);
  await observer.until(['Subscription', SUBSCRIPTION, 'bob', 'Live', 'False/Suspended']);
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']);
  await send('after.0');
  await send('later.1', LATER);
  await observer.remove('Block', 'no-ada', PRODUCER);
  await arrived('later.1', 'ada');
  // The activation that was deleted during the pause is closed, though no object said so any more.
  expect(attemptsOf('after.0', 'ada')).toEqual([]);
});

it('does not rebuild what Redis loses meanwhile: nothing is taken or routed, and after it everything is in force', async () => {
  const { observer } = world;
  await pause('true');
  await installed.redis.command('FLUSHALL');
  const answer = async () => (await publisher.post(makeSample(`lost.${Math.random()}`, LATER, 'x'))).status;
  await eventually('ingress refuses', async () => (await answer()) === 503, { withinMs: 10_000 });
  await eventually(
    'the loss is told',
    async () => (await observer.events()).includes(`Workspace/${PRODUCER} ControlStateRebuilt`),
    { withinMs: 20_000 },
  );
  await delay(3_000);
  expect(await answer()).toBe(503);
  await sluice.restart();
  await delay(2_000);
  expect(await answer()).toBe(503);
  await pause('false');
  await eventually('ingress takes events', async () => (await answer()) === 202, { withinMs: 20_000 });
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  await send('rebuilt.0', LATER);
  await arrived('rebuilt.0', 'ada');
});

it('holds a deletion for a minute, not longer', async () => {
  const { observer } = world;
  await pause('true');
  await delay(500);
  const startedMs = performance.now();
  await observer.remove('CatalogStream', QUEUE, PRODUCER);
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', PAUSED]);
  await eventually('it is gone', async () => !(await observer.exists('CatalogStream', QUEUE, PRODUCER)), {
    withinMs: 90_000,
    everyMs: 500,
  });
  expect(performance.now() - startedMs).toBeGreaterThan(55_000);
  expect(await observer.events()).toContain(`CatalogStream/${QUEUE} LetGoWhilePaused`);
  await pause('false');
  const refused = async () => (await publisher.post(makeSample('gone.0', LATER, 'x'))).body.code;
  await eventually('its queue takes nothing more', async () => (await refused()) === 'stream_closing', {
    withinMs: 20_000,
  });
});

import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, it } from 'vitest';
import { untilCalm, writesOf } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { versionLines } from '../support/listed.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { apply, block, integration, kubectl, pkg, stream, subscription, tenant, waitForAll } from '../support/world.ts';

const KEY = 'key';
const PACKAGE = 'everything';
const OF_STREAM = { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } };
const OF_PACKAGE = { integration: 'ada', target: { kind: 'Package', name: PACKAGE } };
const ENDPOINT = { retrySchedule: Array.from({ length: 16 }, () => '200ms') };

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: [KEY] });
let count = 0;

beforeAll(async () => {
  await world.observer.apply(pkg(PRODUCER, PACKAGE, [QUEUE]));
});

/** Sends one event. Bob is not affected by any block and has received the event when this function returns. */
async function send(id: string): Promise<string> {
  expect((await world.publisher.post(makeSample(id, KEY, id))).status).toBe(202);
  await world.receiver.arrival(id, 'bob');
  return id;
}

const live = (is: string) => world.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', is]);
const enforced = (name: string, is = 'True/Enforced') =>
  world.observer.until(['Block', name, PRODUCER, 'Enforced', is]);
const put = (name: string, spec: object) => world.observer.apply(block(PRODUCER, name, spec));
const lift = (name: string) => world.observer.remove('Block', name, PRODUCER);
/** Returns the ids with this prefix, in the order in which ada received them. */
const takenByAda = (prefix: string) =>
  world.receiver.attempts
    .filter(({ subscription: at, id, status }) => at === 'ada' && id.startsWith(prefix) && status === 204)
    .map(({ id }) => id);

async function fieldOf(name: string, path: string): Promise<string> {
  return kubectl(world.cluster, ['get', `block/${name}`, '-n', PRODUCER, '-o', `jsonpath={${path}}`]);
}

describe('a Block', () => {
  it('stops routing once kubectl wait returns', async () => {
    const prefix = `wait${++count}`;
    await put('by-stream', OF_STREAM);
    await waitForAll(world.cluster, 'block', PRODUCER, 'Enforced');
    const during = await send(`${prefix}.during`);
    await expect.poll(() => fieldOf('by-stream', '.status.pausedSubscriptions'), { timeout: 60_000 }).toBe('1');
    expect(await fieldOf('by-stream', '.status.publicId')).toMatch(/^blk_[0-9a-z]{20}$/);
    expect(await world.observer.conditionOf('Block', 'by-stream', PRODUCER, 'Ready')).toBe('True/Applied');
    expect(world.receiver.attempts.some(({ subscription: at, id }) => at === 'ada' && id === during)).toBe(false);
    await lift('by-stream');
    await world.receiver.arrival(during, 'ada');
  });

  it.each([
    ['the stream, then the package', ['by-stream', 'by-package']],
    ['the package, then the stream', ['by-package', 'by-stream']],
  ])(
    'combined with another Block: %s; resumes after the last unblock, in order and without losing events',
    async (_order, names) => {
      const prefix = `order${++count}`;
      await put('by-stream', OF_STREAM);
      await put('by-package', OF_PACKAGE);
      for (const name of names) await enforced(name);
      const sent = [await send(`${prefix}.both`)];
      await lift(names[0] as string);
      // The resulting routes are known after a later Block of the tenant has been applied.
      await put('later', { integration: 'bob', target: { kind: 'CatalogStream', name: 'not-there' } });
      await enforced('later', 'Unknown/WaitingForTarget');
      await live('False/Blocked');
      sent.push(await send(`${prefix}.one`));
      expect(takenByAda(prefix)).toEqual([]);
      await lift(names[1] as string);
      await lift('later');
      await live('True/Live');
      sent.push(await send(`${prefix}.none`));
      await world.receiver.arrival(sent[2] as string, 'ada');
      expect(takenByAda(prefix)).toEqual(sent);
    },
  );

  it('also applies to an integration, a stream, and a package that are created later', async () => {
    const { observer, receiver } = world;
    await put('early', { integration: 'eve', target: { kind: 'Package', name: 'to-come' } });
    await enforced('early', 'Unknown/WaitingForIntegration');
    await apply(world.cluster, [
      ...tenant('eve'),
      integration(PRODUCER, 'eve'),
      stream(PRODUCER, 'refunds'),
      subscription('eve', PRODUCER, 'refunds', { url: receiver.urlOf('eve'), ...ENDPOINT }),
    ]);
    await enforced('early', 'Unknown/WaitingForTarget');
    await observer.until(['Subscription', `${PRODUCER}-refunds`, 'eve', 'Live', 'True/Live']);
    await observer.apply(pkg(PRODUCER, 'to-come', ['refunds']));
    await enforced('early');
    await observer.until(['Subscription', `${PRODUCER}-refunds`, 'eve', 'Live', 'False/Blocked']);
    await eventually(
      'the Block counts one paused subscription',
      async () => (await fieldOf('early', '.status.pausedSubscriptions')) === '1',
    );
    await lift('early');
    await observer.until(['Subscription', `${PRODUCER}-refunds`, 'eve', 'Live', 'True/Live']);
  });
});

describe('onUnblock: SkipToNow', () => {
  const skip = { onUnblock: 'SkipToNow' };

  it('skips all events of the pause, and delivers events that were in the inbox before', async () => {
    const prefix = `skip${++count}`;
    world.receiver.behave(({ subscription: at }) => (at === 'ada' ? 503 : 204));
    await send(`${prefix}.inbox`);
    await eventually('there was an attempt', async () =>
      world.receiver.attempts.some(({ id, status }) => id === `${prefix}.inbox` && status === 503),
    );
    await put('by-stream', { ...OF_STREAM, ...skip });
    await put('by-package', { ...OF_PACKAGE, ...skip });
    for (const name of ['by-stream', 'by-package']) await enforced(name);
    world.receiver.behave(() => 204);
    for (let n = 0; n < 5; n++) await send(`${prefix}.during-${n}`);
    expect(takenByAda(prefix)).toEqual([]);
    await lift('by-stream');
    await lift('by-package');
    await live('True/Live');
    await send(`${prefix}.after`);
    await world.receiver.arrival(`${prefix}.after`, 'ada');
    expect(takenByAda(prefix)).toEqual([`${prefix}.inbox`, `${prefix}.after`]);
  });

  it('keeps the backlog if one of the Blocks uses Continue', async () => {
    const prefix = `some${++count}`;
    await put('by-stream', { ...OF_STREAM, ...skip });
    await put('by-package', OF_PACKAGE);
    for (const name of ['by-stream', 'by-package']) await enforced(name);
    const sent = [await send(`${prefix}.during`)];
    // The controller may see either Block first. The Block with Continue exists until the end.
    await kubectl(world.cluster, ['delete', 'block', 'by-stream', 'by-package', '-n', PRODUCER, '--wait=false']);
    await live('True/Live');
    sent.push(await send(`${prefix}.after`));
    await world.receiver.arrival(sent[1] as string, 'ada');
    expect(takenByAda(prefix)).toEqual(sent);
  });

  it('does not skip any events after the unblock if the partner is suspended as well', async () => {
    const prefix = `suspended${++count}`;
    const suspended = (value: boolean) =>
      world.observer.apply(
        subscription('ada', PRODUCER, QUEUE, { url: world.receiver.urlOf('ada'), ...ENDPOINT }, { suspended: value }),
      );
    await put('by-stream', { ...OF_STREAM, ...skip });
    await enforced('by-stream');
    await suspended(true);
    await send(`${prefix}.blocked`);
    await lift('by-stream');
    await live('False/Suspended');
    await send(`${prefix}.suspended`);
    expect(takenByAda(prefix)).toEqual([]);
    await suspended(false);
    await live('True/Live');
    await world.receiver.arrival(`${prefix}.suspended`, 'ada');
    expect(takenByAda(prefix)).toEqual([`${prefix}.suspended`]);
  });
});

it('does not write anything once everything is applied', async () => {
  await put('by-stream', OF_STREAM);
  await put('by-package', OF_PACKAGE);
  for (const name of ['by-stream', 'by-package']) await enforced(name);
  await live('False/Blocked');
  const state = async () => ({
    objects: await versionLines(world.cluster),
    redis: await writesOf(world.redis),
  });
  await untilCalm(async () => JSON.stringify(await state()));
  const before = await state();
  await delay(15_000);
  expect(await state()).toEqual(before);
});

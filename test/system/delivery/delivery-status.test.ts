import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { resourceOf } from '../../../src/kube/resource.ts';
import { createFindRecordedSlot } from '../../../src/part/inbox/recorded-slot.ts';
import { createPartInboxRecovery } from '../../../src/part/owner/recovery.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { readApiWrites } from '../../scale/api-writes.ts';
import { untilCalm } from '../support/calm.ts';
import { eventually } from '../support/deadline.ts';
import { inboxOfPartner } from '../support/inboxes.ts';
import { type Listed, list } from '../support/listed.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import {
  activation,
  apply,
  integration,
  kubectl,
  type Manifest,
  subscription,
  tenant,
  waitForAll,
} from '../support/world.ts';

const MANY = 200;
const NAMES = Array.from({ length: MANY }, (_, n) => `many-${String(n).padStart(3, '0')}`);

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'], endpoint: { retrySchedule: ['1h'] } });
let redis: RedisClient;

beforeAll(async () => {
  redis = await connectRedis(world.redis.url, createLogger({ level: 'silent' }));
});

afterAll(async () => {
  await redis?.close();
});

/** Returns the row of `kubectl get`, by header. */
async function row(name: string, namespace: string): Promise<Readonly<Record<string, string>>> {
  const text = await kubectl(world.cluster, ['get', 'wsub', name, '-n', namespace]);
  const [head = '', line = ''] = text.split('\n');
  const titles = [...head.matchAll(/\S+(?: \S+)*/g)].map(match => ({ title: match[0], at: match.index }));
  return Object.fromEntries(titles.map(({ title, at }, i) => [title, line.slice(at, titles[i + 1]?.at).trim()]));
}

/** Waits until `kubectl get` prints these values. Runs it again when the object has changed. */
async function shows(wanted: Readonly<Record<string, string>>, withinMs = 60_000): Promise<void> {
  let printed = '';
  const isShown = async () => {
    const version = await world.observer.versionOf('Subscription', SUBSCRIPTION, 'ada');
    if (version === printed) return false;
    const has = await row(SUBSCRIPTION, 'ada');
    printed = version;
    return Object.entries(wanted).every(([title, is]) => has[title] === is);
  };
  await eventually(`kubectl get prints ${JSON.stringify(wanted)}`, isShown, { withinMs, everyMs: 200 });
}

async function recover(): Promise<void> {
  const recovery = createPartInboxRecovery(redis, createFindRecordedSlot(redis));
  expect(await recovery.recover(await inboxOfPartner(redis, 'ada'), { sinceMs: 0 })).toMatchObject({ answer: 'OK' });
}

it('shows a failing endpoint with its backlog, and its recovery', async () => {
  const { receiver } = world;
  await shows({ LIVE: 'True', 'LAST ATTEMPT': '', DEAD: 'false', BACKLOG: '0' });
  await world.publisher.publish(makeSample('well', 'key', 'x'));
  await shows({ 'LAST ATTEMPT': 'Succeeded', BACKLOG: '0' });
  receiver.behave(() => 500);
  for (let n = 0; n < 12; n++) await world.publisher.publish(makeSample(`waits.${n}`, 'key', 'x'));
  await shows({ 'LAST ATTEMPT': 'HttpError', LIVE: 'True', REASON: 'Admitted', DEAD: 'false' });
  await shows({ BACKLOG: '10+' });
  receiver.behave(() => 204);
  await recover();
  await shows({ 'LAST ATTEMPT': 'Succeeded', BACKLOG: '0', DEAD: 'false' });
});

it('shows a dead letter with an Event until it is recovered', async () => {
  const { receiver, observer } = world;
  const endpoint = { url: receiver.urlOf('ada'), retrySchedule: ['1ms'] };
  await apply(world.cluster, [subscription('ada', PRODUCER, QUEUE, endpoint)]);
  await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
  receiver.behave(() => 500);
  await world.publisher.publish(makeSample('dies', 'key', 'a secret of the payload'));
  await world.publisher.publish(makeSample('dies.too', 'key', 'a secret of the payload'));
  await shows({ DEAD: 'true', 'LAST ATTEMPT': 'HttpError', BACKLOG: '0' });
  await observer.untilEvent(`Subscription/${SUBSCRIPTION} DeadLetter`);
  const text = await kubectl(world.cluster, ['describe', `wsub/${SUBSCRIPTION}`, '-n', 'ada']);
  const reported = text.split('\n').filter(line => line.includes('DeadLetter'));
  expect(reported).toEqual([expect.stringMatching(/Warning +DeadLetter .*event evt_[0-9a-z]{35} is a dead letter/)]);
  expect(text).not.toContain('a secret of the payload');
  receiver.behave(() => 204);
  await recover();
  await shows({ DEAD: 'false', 'LAST ATTEMPT': 'Succeeded', BACKLOG: '0' });
});

/** Returns the number of status writes for Subscriptions that were requested so far. */
async function statusWrites(): Promise<number> {
  const writes = await readApiWrites(world.cluster);
  return [...writes].reduce((sum, [key, count]) => (key.endsWith('subscriptions/status') ? sum + count : sum), 0);
}

interface Shown extends Listed {
  readonly status: { readonly delivery: Readonly<Record<string, unknown>> };
}

const many = () => list<Shown>(world.cluster, [resourceOf('Subscription')], 'many');

it('writes at most five statuses per second while 200 endpoints are unstable, and nothing afterwards', async () => {
  const { receiver } = world;
  const endpoint = { url: receiver.urlOf('many'), retrySchedule: Array.from({ length: 16 }, () => '3s') };
  const named = (manifest: Manifest, name: string): Manifest => ({
    ...manifest,
    metadata: { ...manifest.metadata, name },
  });
  const objects = tenant('many');
  for (const name of NAMES) {
    objects.push(named(integration(PRODUCER, 'many'), name));
    objects.push(named(subscription('many', PRODUCER, QUEUE, endpoint, { integration: name }), name));
    objects.push(activation(PRODUCER, name, 'flaps'));
  }
  await apply(world.cluster, objects);
  await waitForAll(world.cluster, 'subscription', 'many', 'Live');
  await waitForAll(world.cluster, 'activation', PRODUCER, 'Effective');
  const counts: { readonly fromMs: number; readonly count: number; readonly toMs: number }[] = [];
  const look = async () => {
    const fromMs = performance.now();
    counts.push({ fromMs, count: await statusWrites(), toMs: performance.now() });
  };
  let fails = 0;
  receiver.behave(() => (fails++ % 3 === 2 ? 204 : 503));
  await look();
  for (let n = 0; n < 4; n++) {
    await world.publisher.publish(makeSample(`flap.${n}`, 'flaps', 'x'));
    for (let i = 0; i < 10; i++) {
      await delay(500);
      await look();
    }
  }
  receiver.behave(() => 204);
  await eventually(
    'all statuses show working endpoints',
    async () => {
      await look();
      const deliveries = (await many()).map(({ status }) => status.delivery);
      return (
        deliveries.length === MANY &&
        deliveries.every(each => each['lastAttempt'] === 'Succeeded' && each['backlog'] === '0' && !each['deadLetters'])
      );
    },
    // The metrics of an API server are a megabyte.
    { withinMs: 300_000, everyMs: 2_000 },
  );
  const written = (counts.at(-1)?.count ?? 0) - (counts[0]?.count ?? 0);
  console.log(`${written} writes in ${Math.round((counts.at(-1)?.toMs ?? 0) - (counts[0]?.fromMs ?? 0))} ms`);
  expect(written).toBeGreaterThanOrEqual(MANY);
  // Each window may contain one additional write at each end.
  for (const [i, from] of counts.entries()) {
    for (const to of counts.slice(i + 1)) {
      expect(to.count - from.count).toBeLessThanOrEqual((5 * (to.toMs - from.fromMs)) / 1_000 + 2);
    }
  }
  await untilCalm(statusWrites);
  await delay(15_000);
  const before = [await statusWrites(), (await many()).map(({ metadata }) => metadata.resourceVersion)];
  // The duration of a complete audit.
  await delay(65_000);
  expect([await statusWrites(), (await many()).map(({ metadata }) => metadata.resourceVersion)]).toEqual(before);
});

import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestPart, event } from '../../../../test/support/part/part.ts';
import { redisUrl } from '../../../../test/support/redis/shared.ts';
import { generationOf, publicId } from '../../../core/ids/ids.ts';
import { publicEventId } from '../../../core/ids/public-event-id.ts';
import { createPartRoutingReader } from '../../../part/fate/routing-reader.ts';
import { inboxRefOf } from '../../../part/inbox/ref-names.ts';
import { inboxMember } from '../../../plane/inbox-ref.ts';
import { connectRedis, type RedisClient } from '../../../redis/client.ts';
import { createLogger } from '../../../telemetry/log.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { findEvent } from './find-event.ts';

let redis: RedisClient;
beforeAll(async () => {
  redis = await connectRedis(redisUrl(), createLogger({ level: 'silent' }));
});
afterAll(() => redis.close());

const UID = '0f3f4a3e-7f1c-4a9c-9f55-0d6b8f1f2a10';
const subOf = (stream: string, namespace = 'buyer') => publicId('Subscription', namespace, stream);

/** Creates a producer with two streams. One partner subscribes to both. */
async function start() {
  const tenant = `ten_${randomBytes(8).toString('hex')}`;
  const parts = {
    aa: createTestPart(redis, { tenant, queue: 'aa' }),
    zz: createTestPart(redis, { tenant, queue: 'zz' }),
  };
  for (const [queue, part] of Object.entries(parts)) await part.setUp({ [subOf(queue)]: {} }, ['k']);
  const known = new Map(
    [...['aa', 'zz'].map(name => ['buyer', name]), ['stranger', 'zz'] as const].map(([namespace = '', name = '']) => [
      subOf(name, namespace),
      { metadata: { namespace, name, uid: UID }, spec: { producer: 'shop', integration: 'partner', stream: name } },
    ]),
  );
  const caches = {
    by: (_kind: string, _index: string, id: string) => (known.has(id) ? [known.get(id)] : []),
    get: () => ({ spec: { workspace: 'buyer' } }),
  };
  const client = { ...redis, ...parts.aa.client };
  const routing = createPartRoutingReader(
    client,
    () => parts.aa.clock.ms,
    () => 'active',
  );
  const facade = { caches, routing } as unknown as Facade;
  const streams = Object.keys(parts).map(name => ({ metadata: { name } }) as Cached<'CatalogStream'>);
  const owned = { publicId: tenant, name: 'shop' } as OwnedTenant;

  async function publish(queue: 'aa' | 'zz', id: string): Promise<string> {
    const meta = JSON.stringify({ i: id, s: '/x' });
    const stored = await parts[queue].ingest(event('k', { senderId: id, meta }));
    if (stored.answer !== 'OK' || !('ref' in (stored.events[0] ?? {}))) throw new Error(stored.answer);
    return inboxRefOf((stored.events[0] as { ref: string }).ref);
  }
  /** Returns the stream and the producer's id, or the code of the problem. */
  const find = (id: string, among = streams) =>
    findEvent(facade, owned, among, id).then(
      ({ stream, event: { meta } }) => `${stream.metadata.name} ${meta.id}`,
      ({ code }) => code,
    );
  const findThird = () => findEvent(facade, owned, streams, 'third');
  return { parts, known, publish, find, findThird, streams };
}

test('if several streams contain an id, the event that was accepted last is returned', async () => {
  const { parts, publish, find, findThird, streams } = await start();
  await publish('aa', 'first');
  parts.zz.clock.ms += 1;
  await publish('zz', 'first');
  expect(await find('first')).toBe('zz first');
  await publish('zz', 'second');
  parts.aa.clock.ms += 2;
  await publish('aa', 'second');
  expect(await find('second')).toBe('aa second');
  expect(await find('second', streams.slice(1))).toBe('zz second');
  expect(await find('third')).toBe('unknown_event');
  await expect(findThird()).rejects.toMatchObject({
    facts: { detail: expect.stringContaining('by its id in an inbox') },
  });
});

test('an id in an inbox only belongs to the stream of its subscription', async () => {
  const { parts, known, publish, find, streams } = await start();
  const ref = await publish('aa', 'a');
  expect(await publish('zz', 'z')).toBe(ref);
  expect(await find(publicEventId(ref, subOf('aa')))).toBe('aa a');
  expect(await find(publicEventId(ref, subOf('zz')))).toBe('zz z');
  expect(await find(publicEventId(ref, subOf('zz')), streams.slice(0, 1))).toBe('unknown_event');
  for (const foreign of [subOf('zz', 'stranger'), subOf('other'), publicId('Integration', 'shop', 'partner')]) {
    expect(await find(`evt_${ref}${foreign.slice(4)}`)).toBe('unknown_event');
  }

  const inbox = inboxMember({
    integration: publicId('Integration', 'shop', 'partner'),
    sub: subOf('zz'),
    inc: generationOf(UID),
  });
  await parts.zz.change({ kind: 'drop', slot: parts.zz.slot(subOf('zz')), inbox });
  known.delete(subOf('zz'));
  expect(await find(publicEventId(ref, subOf('zz')))).toBe('zz z');
});

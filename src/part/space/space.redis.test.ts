import { describe, expect, test } from 'vitest';
import { event, type TestPart } from '../../../test/support/part/part.ts';
import { SILENCES, silentClient } from '../../../test/support/part/silent-client.ts';
import { accountKeys } from '../../redis/keys.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { ScriptClient } from '../call.ts';
import { createIngest } from '../log/ingest.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';
import { partName } from '../tokens/part-name.ts';
import { createTokens } from '../tokens/tokens.ts';
import { createIngestWithin } from './ingest-within.ts';
import { createSpace } from './space.ts';
import { HOUR_MS, repeat, startAccount } from './testing/account-parts.ts';

onEachRedis(redis => {
  const start = (limit: number | undefined, count?: number) => startAccount(redis(), limit, count);

  test('an account without a limit does not require any calls', async () => {
    const { first, granted, send, replicaOf } = await start(undefined);
    const calls: string[] = [];
    const counting: ScriptClient = {
      ...first.client,
      runNamed: (script, call) => {
        calls.push(script.name);
        return first.client.runNamed(script, call);
      },
    };
    expect(await send(first, repeat(50, 5), replicaOf(first, counting))).toEqual(repeat('OK', 5));
    expect([calls, await granted()]).toEqual([['ingest'], []]);
  });

  test('stores events up to the limit, and none beyond it', async () => {
    // Each event costs 300.
    const { first, send, stored } = await start(3_000);
    const sizes = repeat(50, 12);
    expect(await send(first, sizes)).toEqual([...repeat('OK', 10), ...repeat('LIMIT', 2)]);
    expect(await stored()).toBe(3_000);
    expect((await first.log()).length).toBe(10);
  });

  test('stores a smaller event if a larger event does not fit', async () => {
    const { first, send } = await start(1_000);
    expect(await send(first, [50, 2_000, 50, 50])).toEqual(['OK', 'LIMIT', 'OK', 'OK']);
    expect(await send(first, [50])).toEqual(['LIMIT']);
  });

  test('reclaims space that another part has not used', async () => {
    const { parts, first, send, stored, granted } = await start(300_000, 3);
    for (const t of parts.slice(1)) expect(await send(t, [50])).toEqual(['OK']);
    expect((await granted()).every(bytes => bytes > 300)).toBe(true);
    for (let i = 0; i < 20; i++) await send(first, repeat(50, 50));
    expect(await stored()).toBe(300_000);
    expect(await send(first, [50])).toEqual(['LIMIT']);
  });

  test.each(SILENCES)('reclaims space from other parts while one that has some %s', async (_what, answer) => {
    const limit = 300_000;
    const { parts, first, send, replicaOf, stored, granted } = await start(limit, 3);
    const silent = parts[1] as TestPart;
    expect(await send(silent, [50])).toEqual(['OK']);
    const [unused = 0] = (await granted()).map(bytes => bytes - 300);
    expect(unused).toBeGreaterThan(0);
    expect(await send(parts[2] as TestPart, [50])).toEqual(['OK']);
    const ingest = replicaOf(first, silentClient(first.client, silent.part.tenant, answer));
    const answers: string[] = [];
    for (let i = 0; i < 20; i++) answers.push(...(await send(first, repeat(50, 50), ingest)));
    expect([...new Set(answers)].toSorted()).toEqual(['LIMIT', 'OK']);
    expect((await stored()) + unused).toBeLessThanOrEqual(limit);
    expect((await stored()) + unused + 300).toBeGreaterThan(limit);
  });

  test('at most a twentieth of the limit is unused when an event is refused', async () => {
    let limit = 1_000_000;
    const { parts, send, setLimit, stored, granted } = await start(limit, 12);
    const unused = async () => (await granted()).reduce((sum, bytes) => sum + bytes, 0) - (await stored());
    for (const [n, t] of parts.entries()) {
      limit += 100_000;
      await setLimit(limit);
      // So far, the parts require little and are granted more. Space was reclaimed from them less than five seconds
      // ago.
      for (const earlier of parts.slice(0, n)) expect(await send(earlier, [50])).toEqual(['OK']);
      if (n > 0) expect(await unused()).toBeGreaterThan(0);
      for (let isFull = false; !isFull; ) isFull = (await send(t, repeat(9_750, 20))).includes('LIMIT');
      expect([n, (await unused()) <= limit / 20]).toEqual([n, true]);
      expect([n, (await stored()) + 10_000 > 0.95 * limit]).toEqual([n, true]);
    }
  });

  test('events that are routed later only exceed the limit by 495 bytes for each delivery, and 60 for each event', async () => {
    const { parts, first, send, replicaOf, spaceOf, clock, pass, stored } = await start(30_000, 2);
    const other = parts[1] as TestPart;
    for (const name of ['a', 'b']) {
      await first.setRow(name, { route: 'paused' });
      await first.activate(name, 'k');
    }
    const ingest = replicaOf(first);
    // Each event costs 300.
    const events = repeat(event('k', { meta: '', body: Buffer.alloc(49) }), 50);
    for (let calls = 0; calls < 2; calls++) await ingest(first.part, 'c1', events);
    expect([await stored(), await send(first, [50])]).toEqual([30_000, ['LIMIT']]);
    for (const name of ['a', 'b']) await first.setRow(name, {});
    await redis().call('hset', first.keys.meta, 'granted', '1000');
    expect(await first.advanceAll()).toBe(200);
    expect(await stored()).toBe(30_000 + 200 * 495 + 100 * 60);
    // No part stores events until there is space again.
    await spaceOf(first).register(first.part, clock.ms);
    pass(5_000);
    for (const t of [first, other]) expect(await send(t, [50])).toEqual(['LIMIT']);
    // The results of expired deliveries are kept longer than their events.
    pass(24 * HOUR_MS);
    await sweepAll(first);
    expect(await stored()).toBe(0);
    expect(await send(other, repeat(50, 64))).toEqual(repeat('OK', 64));
  });

  test('a refusal contains the limit and its usage', async () => {
    const { parts, first, send, replicaOf } = await start(3_000, 2);
    await send(parts[1] as TestPart, [50]);
    await send(first, repeat(50, 9));
    const ingest = replicaOf(first);
    // The second response is derived from the first one.
    for (let calls = 0; calls < 2; calls++) {
      const answer = await ingest(first.part, 'c1', [event('', { meta: '', body: Buffer.alloc(50) })]);
      const use = { limitBytes: 3_000, usedBytes: 3_000 };
      expect(answer).toMatchObject({ events: [{ answer: 'LIMIT', cost: 300, use }] });
    }
  });

  test('space is available again after events expire', async () => {
    const { first, send, pass, stored } = await start(3_000, 2);
    await send(first, repeat(50, 10));
    expect(await send(first, [50])).toEqual(['LIMIT']);
    pass(HOUR_MS + 60_000);
    await sweepAll(first);
    expect(await stored()).toBe(0);
    expect(await send(first, repeat(50, 10))).toEqual(repeat('OK', 10));
  });

  test('space released in one part is used by another', async () => {
    const { parts, send, pass, stored } = await start(3_000, 2);
    const [one, two] = parts as [TestPart, TestPart];
    await send(one, repeat(50, 10));
    expect(await send(two, [50])).toEqual(['LIMIT']);
    pass(HOUR_MS + 60_000);
    await sweepAll(one);
    expect(await send(two, repeat(50, 10))).toEqual(repeat('OK', 10));
    expect(await stored()).toBe(3_000);
  });

  test('a removed part does not hold any space', async () => {
    const { parts, send, pass } = await start(3_000, 2);
    const [gone, two] = parts as [TestPart, TestPart];
    await send(gone, repeat(50, 10));
    await redis().call('unlink', gone.keys.meta);
    pass(5_000);
    expect(await send(two, repeat(50, 10))).toEqual(repeat('OK', 10));
  });

  test('a part with another account does not hold any space of its former account', async () => {
    const { parts, account, send, pass } = await start(3_000, 2);
    const [moved, two] = parts as [TestPart, TestPart];
    await send(moved, repeat(50, 5));
    const other = `${account}other`;
    await moved.change({ kind: 'meta', field: 'payer', value: other });
    expect((await moved.hash('meta')).space).toBeUndefined();
    expect(await send(moved, [50])).toEqual(['OK']);
    pass(5_000);
    expect(await send(two, repeat(50, 10))).toEqual(repeat('OK', 10));
    expect(Object.keys(await redis().readHash(accountKeys(account).space))).toEqual([partName(two.part)]);
    // Its current account is not affected.
    const [, granted] = ((await redis().readHash(accountKeys(other).space))[partName(moved.part)] ?? '').split(' ');
    expect((await moved.hash('meta')).space).toBe(granted);
    expect(await send(moved, repeat(50, 5))).toEqual([...repeat('OK', 4), 'LIMIT']);
  });

  test('a recall that takes long does not remove a part that was granted space again', async () => {
    const { parts, account, send, clock, spaceOf } = await start(3_000, 2);
    const [one, two] = parts as [TestPart, TestPart];
    await send(one, repeat(50, 5));
    const late: ScriptClient = {
      ...two.client,
      runNamed: async (script, call) => {
        if (script.name !== 'shrink-space') return two.client.runNamed(script, call);
        await one.change({ kind: 'meta', field: 'payer', value: `${account}other` });
        const reply = await two.client.runNamed(script, call);
        await one.change({ kind: 'meta', field: 'payer', value: account });
        await spaceOf(one).grow(one.part, 600, clock.ms);
        return reply;
      },
    };
    await spaceOf(two, late).grow(two.part, 3_000, clock.ms);
    const [, granted] = ((await redis().readHash(accountKeys(account).space))[partName(one.part)] ?? '').split(' ');
    expect((await one.hash('meta')).space).toBe(granted);
  });

  describe('a limit that changes', () => {
    test('is in force immediately if it is raised', async () => {
      const { first, send, setLimit, pass } = await start(600);
      expect(await send(first, [50, 50, 50])).toEqual(['OK', 'OK', 'LIMIT']);
      await setLimit(900);
      pass(1_000);
      expect(await send(first, [50, 50])).toEqual(['OK', 'LIMIT']);
    });

    test('below the stored bytes refuses new events, and keeps all stored ones', async () => {
      const { parts, send, setLimit, stored, pass } = await start(100_000, 2);
      const [one, two] = parts as [TestPart, TestPart];
      for (const t of parts) await send(t, [50, 50]);
      await setLimit(700);
      pass(5_000);
      for (const t of [one, two]) expect(await send(t, [50])).toEqual(['LIMIT']);
      expect(await stored()).toBe(1_200);
      await setLimit(1_500);
      pass(5_000);
      expect([await send(one, [50]), await send(two, [50])]).toEqual([['OK'], ['LIMIT']]);
      expect(await stored()).toBe(1_500);
    });

    test('below the stored bytes refuses events even if others expire', async () => {
      const { parts, send, setLimit, stored, pass } = await start(100_000, 2);
      const [one, two] = parts as [TestPart, TestPart];
      await send(one, repeat(50, 10));
      pass(HOUR_MS / 2);
      await send(two, repeat(50, 10));
      await setLimit(3_300);
      pass(5_000);
      for (const t of parts) expect(await send(t, [50])).toEqual(['LIMIT']);
      pass(HOUR_MS / 2);
      await sweepAll(one);
      expect(await stored()).toBe(3_000);
      for (const t of parts) await send(t, [50, 50]);
      expect(await stored()).toBe(3_300);
    });

    test('counts events that were stored before the limit', async () => {
      const { parts, send, setLimit, spaceOf, clock } = await start(undefined, 2);
      const [one, two] = parts as [TestPart, TestPart];
      await send(one, [50, 50, 50]);
      await setLimit(1_200);
      for (const t of parts) await spaceOf(t).register(t.part, clock.ms);
      expect(await send(two, [50, 50])).toEqual(['OK', 'LIMIT']);
      await setLimit(undefined);
      expect(await send(one, [50, 50, 50])).toEqual(['OK', 'OK', 'OK']);
    });
  });

  test('tries a full account again after a second, or for a smaller event', async () => {
    const { first, send, replicaOf, spaceOf, clock } = await start(300);
    const calls = { grow: 0 };
    const space = spaceOf(first);
    const ingest = createIngestWithin({
      ingest: createIngest(first.client, () => clock.ms),
      space: {
        grow: (...args) => {
          calls.grow++;
          return space.grow(...args);
        },
      },
      nowMs: () => clock.ms,
      monotonicMs: () => clock.monotonicMs,
    });
    await send(first, [50], replicaOf(first));
    for (let i = 0; i < 10; i++) expect(await send(first, [50], ingest)).toEqual(['LIMIT']);
    expect(calls.grow).toBe(1);
    await send(first, [20], ingest);
    expect(calls.grow).toBe(2);
    clock.monotonicMs += 1_000;
    await send(first, [50], ingest);
    expect(calls.grow).toBe(3);
  });

  test('acknowledges stored events if the account does not respond for the other events', async () => {
    const { first, send, spaceOf, clock } = await start(700);
    const away = async () => Promise.reject(new Error('unavailable'));
    const ingestWith = (grow: () => Promise<never>) =>
      createIngestWithin({
        ingest: createIngest(first.client, () => clock.ms),
        space: { ...spaceOf(first), grow },
        nowMs: () => clock.ms,
        monotonicMs: () => clock.monotonicMs,
      });
    // An event of 50 bytes takes 300.
    await spaceOf(first).grow(first.part, 300, clock.ms);
    const parted = [50, 250].map(size => event('', { meta: '', body: Buffer.alloc(size) }));
    const answer = await ingestWith(away)(first.part, 'c1', parted);
    expect(answer).toMatchObject({ events: [{ answer: 'OK' }, { answer: 'UNAVAILABLE' }] });
    expect(answer).toHaveProperty('failure.message', 'unavailable');
    // Nothing was stored because the store is not available.
    await expect(send(first, [250], ingestWith(away))).rejects.toThrow('unavailable');
    const never = () => new Promise<never>(() => {});
    await expect(send(first, [250], ingestWith(never))).rejects.toThrow('no answer within 1000 ms');
  });

  test('events that require space have the response of their second attempt', async () => {
    const { first, send, clock, spaceOf } = await start(700);
    await spaceOf(first).grow(first.part, 300, clock.ms);
    const store = createIngest(first.client, () => clock.ms);
    for (const word of ['STALE', 'CLOSED', 'GONE'] as const) {
      let calls = 0;
      const ingest = createIngestWithin({
        ingest: async (...args) => (calls++ === 0 ? store(...args) : { answer: word }),
        space: { grow: async () => ({ answer: 'OK', bytes: 0 }) as never },
        nowMs: () => clock.ms,
        monotonicMs: () => clock.monotonicMs,
      });
      expect((await send(first, [50, 250], ingest)).at(-1)).toBe(word);
    }
  });

  test('an account removes the data of a removed part', async () => {
    const { first, account, send, replicaOf, clock } = await start(300);
    await send(first, [50], replicaOf(first));
    const entries = () => redis().readHash(accountKeys(account).space);
    expect(Object.keys(await entries())).toHaveLength(1);
    await createTokens(first.client).close(first.part, clock.ms);
    expect(await entries()).toEqual({});
  });

  test('an account that lost the latest changes learns again how much a part stores', async () => {
    const { parts, account, clock, spaceOf, send, stored } = await start(3_000, 2);
    const [one, two] = parts as [TestPart, TestPart];
    await send(one, repeat(50, 8));
    await redis().call('hset', accountKeys(account).space, partName(one.part), '0 0 0');
    await spaceOf(one).register(one.part, clock.ms);
    expect(await send(two, repeat(50, 5))).toEqual(['OK', 'OK', 'LIMIT', 'LIMIT', 'LIMIT']);
    expect(await stored()).toBe(3_000);
  });

  test('a part that has lost its meta does not store less than nothing after its events have expired', async () => {
    const { parts, account, send, setLimit, stored, pass } = await start(3_000, 2);
    const [one, two] = parts as [TestPart, TestPart];
    expect(await send(one, repeat(50, 5))).toEqual(repeat('OK', 5));
    await redis().call('del', one.keys.meta);
    // This is what the controller does. Only the quota restarts at 0.
    await one.setUp({}, []);
    await one.change(
      { kind: 'meta', field: 'payer', value: account },
      { kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) },
    );
    await setLimit(3_000);
    pass(HOUR_MS + 1);
    await sweepAll(one);
    expect([await one.log(), await stored()]).toEqual([[], 0]);
    expect(await send(two, repeat(50, 5))).toEqual(repeat('OK', 5));
    expect(await send(one, repeat(50, 7))).toEqual([...repeat('OK', 5), 'LIMIT', 'LIMIT']);
    expect(await stored()).toBe(3_000);
  });

  test('delayed steps never grant more than is available', async () => {
    const { parts, account, send, stored, pass } = await start(30_000, 2);
    const [one, two] = parts as [TestPart, TestPart];
    const late: (() => Promise<unknown>)[] = [];
    const slow: ScriptClient = {
      ...one.client,
      runNamed: async (script, call) => {
        if (script.name === 'apply-space') late.push(() => one.client.runNamed(script, call));
        return one.client.runNamed(script, call);
      },
    };
    const { replicaOf } = {
      replicaOf: (t: TestPart) =>
        createIngestWithin({
          ingest: createIngest(slow, () => one.clock.ms),
          space: createSpace({ ...slow, call: redis().call }),
          nowMs: () => t.clock.ms,
        }),
    };
    // The last grant has not been used up.
    for (let i = 0; i < 8; i++) await send(one, [50], replicaOf(one));
    pass(5_000);
    for (let i = 0; i < 10; i++) await send(two, repeat(50, 20));
    expect(await stored()).toBe(30_000);
    for (const call of late) await call();
    expect(await send(one, [50])).toEqual(['LIMIT']);
    expect(await stored()).toBe(30_000);
    expect(Object.keys(await redis().readHash(accountKeys(account).space)).toSorted()).toEqual(
      [one, two].map(t => partName(t.part)).toSorted(),
    );
  });

  test('a late recall does not affect a later grant', async () => {
    const { parts, account, send, replicaOf } = await start(30_000, 2);
    const [one, two] = parts as [TestPart, TestPart];
    for (let i = 0; i < 8; i++) await send(one, [50]);
    let grown: string[] = [];
    const late: ScriptClient = {
      ...two.client,
      runNamed: async (script, call) => {
        if (script.name === 'shrink-space' && grown.length === 0) {
          grown = ['-'];
          grown = await send(one, [50, 50, 50]);
        }
        return two.client.runNamed(script, call);
      },
    };
    expect(await send(two, [27_050], replicaOf(two, late))).toEqual(['LIMIT']);
    expect(grown).toEqual(['OK', 'OK', 'OK']);
    const { space, spaceSeq, bytes } = await one.hash('meta');
    const [seq, granted] = ((await redis().readHash(accountKeys(account).space))[partName(one.part)] ?? '').split(' ');
    expect([spaceSeq, space]).toEqual([seq, granted]);
    expect(Number(space)).toBeGreaterThan(Number(bytes));
  });

  test('a late grant of an earlier limit has no effect', async () => {
    const { first, send, setLimit, replicaOf } = await start(100_000);
    const held: (() => Promise<unknown>)[] = [];
    const holding: ScriptClient = {
      ...first.client,
      runNamed: async (script, call) => {
        if (script.name !== 'apply-space') return first.client.runNamed(script, call);
        held.push(() => first.client.runNamed(script, call));
        return ['OK'];
      },
    };
    expect(await send(first, [50], replicaOf(first, holding))).toEqual(['LIMIT']);
    await setLimit(200);
    for (const call of held) await call();
    expect(held.length).toBeGreaterThan(0);
    expect(await send(first, [50])).toEqual(['LIMIT']);
    await setLimit(100_000);
    for (const call of held) await call();
    expect(await send(first, [50])).toEqual(['OK']);
  });
});

import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createKeyRing, keyRingOf } from '../core/delivery/key-ring.ts';
import { callKeys } from '../redis/keys.ts';
import { onEachRedis } from '../redis/testing/each-redis.ts';
import { type Begun, createKeyedCalls, type KeyedCall, MOST_CALLS, MOST_CALLS_OF_ACCOUNT } from './keyed-calls.ts';

const KEYS = keyRingOf(Buffer.alloc(32, 7));
const DAY_MS = 24 * 3_600_000;
const TURN_MS = 60_000;

onEachRedis(redis => {
  /** Two replicas of the facade, and a call with a separate key. */
  function start() {
    const clock = { ms: 1_800_000_000_000 };
    const [one, two] = [1, 2].map(() => createKeyedCalls(redis(), KEYS, () => clock.ms));
    const owner = `ten_${randomBytes(8).toString('hex')}`;
    const call: KeyedCall = { account: `acc_${owner}`, owner, operation: 'createIngressKey', key: 'k', request: '{}' };
    return { clock, one: one as typeof one & object, two: two as typeof one & object, call };
  }

  function running(begun: Begun): Extract<Begun, { answer: 'RUN' }> {
    if (begun.answer !== 'RUN') throw new Error(begun.answer);
    return begun;
  }

  describe('a call with a key', () => {
    test('is performed once and has the same response on each replica, including concurrent calls', async () => {
      const { one, two, call } = start();
      const begun = await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? one : two).begin(call)));
      const [first, ...others] = begun.filter(({ answer }) => answer === 'RUN');
      expect(others).toEqual([]);
      expect(new Set(begun.map(({ answer }) => answer))).toEqual(new Set(['RUN', 'BUSY']));
      await running(first as Begun).end('done', 'secret text');
      for (const each of [one, two]) expect(await each.begin(call)).toEqual({ answer: 'DONE', text: 'secret text' });
      const stored = JSON.stringify(await redis().call('hgetall', await nameOf(call)));
      expect(stored).toContain('s2.');
      expect(stored).not.toContain('secret text');
    });

    test('conflicts with a different request, before and after the response', async () => {
      const { one, call } = start();
      const { end } = running(await one.begin(call));
      expect(await one.begin({ ...call, request: '{"id":1}' })).toEqual({ answer: 'CONFLICT' });
      await end('done', 'text');
      expect(await one.begin({ ...call, request: '{"id":1}' })).toEqual({ answer: 'CONFLICT' });
      const others = [{ key: 'l' }, { operation: 'sendTestEvent' }, { owner: `${call.owner}x` }];
      for (const other of others) expect((await one.begin({ ...call, ...other })).answer).toBe('RUN');
    });

    test('that was interrupted is completed by a repetition, with the same seed', async () => {
      const { clock, one, two, call } = start();
      const first = running(await one.begin(call));
      expect(await two.begin(call)).toEqual({ answer: 'BUSY', leftMs: TURN_MS });
      clock.ms += TURN_MS - 1;
      expect(await two.begin(call)).toEqual({ answer: 'BUSY', leftMs: 1 });
      clock.ms += 1;
      const second = running(await two.begin(call));
      expect(second.seed).toBe(first.seed);
      // The replica was suspended, and did not crash.
      await first.end('forget');
      await first.end('done', 'of the first');
      expect((await one.begin(call)).answer).toBe('BUSY');
      await second.end('done', 'of the second');
      expect(await one.begin(call)).toEqual({ answer: 'DONE', text: 'of the second' });
    });

    test('releases its key if it was refused', async () => {
      const { one, call } = start();
      const first = running(await one.begin(call));
      await first.end('forget');
      const second = running(await one.begin({ ...call, request: '{"id":2}' }));
      expect(second.seed).not.toBe(first.seed);
    });

    test('continues after a failure, even if a repetition was refused in the meantime', async () => {
      const { one, two, call } = start();
      const first = running(await one.begin(call));
      await first.end('release');
      const second = running(await two.begin(call));
      expect(second.seed).toBe(first.seed);
      // The first attempt may have had an effect, so another seed would have a second one.
      await second.end('forget');
      expect(await one.begin({ ...call, request: '{"id":2}' })).toEqual({ answer: 'CONFLICT' });
      const third = running(await one.begin(call));
      expect(third.seed).toBe(first.seed);
      await third.end('done', 'text');
      expect(await two.begin(call)).toEqual({ answer: 'DONE', text: 'text' });
    });

    test('continues after a crash, even if a repetition was refused in the meantime', async () => {
      const { clock, one, two, call } = start();
      const first = running(await one.begin(call));
      clock.ms += TURN_MS;
      await running(await two.begin(call)).end('forget');
      expect(running(await one.begin(call)).seed).toBe(first.seed);
    });

    test('is not delayed after the clock was set back', async () => {
      const { clock, one, call } = start();
      await one.begin(call);
      clock.ms -= 3_600_000;
      expect(await one.begin(call)).toEqual({ answer: 'BUSY', leftMs: TURN_MS });
    });

    test('is stored for a day, from its start', async () => {
      const { clock, one, call } = start();
      const { end } = running(await one.begin(call));
      await end('done', 'text');
      const key = await nameOf(call);
      const left = Number(await redis().call('pttl', key));
      expect(left).toBeGreaterThan(DAY_MS - 60_000);
      expect(left).toBeLessThanOrEqual(DAY_MS);
      await redis().call('del', key);
      clock.ms += DAY_MS;
      expect((await one.begin(call)).answer).toBe('RUN');
      expect(await redis().call('zcard', callKeys(call.account, call.owner).calls)).toBe(1);
    });

    test('is refused if its owner has too many, until one of them is removed', async () => {
      const { clock, one, call } = start();
      const { calls } = callKeys(call.account, call.owner);
      const many = Array.from({ length: MOST_CALLS }, (_, n) => [clock.ms + 5_000 + n, `x${n}`]);
      await redis().call('zadd', calls, ...many.flat());
      expect(await one.begin(call)).toEqual({ answer: 'MANY', leftMs: 5_000 });
      clock.ms += 5_000;
      expect((await one.begin(call)).answer).toBe('RUN');
      expect((await one.begin({ ...call, owner: `${call.owner}x`, key: 'l' })).answer).toBe('RUN');
    });

    test('is refused if the account has too many, unless its key is known, until one of them is removed', async () => {
      const { clock, one, call } = start();
      const { end } = running(await one.begin(call));
      await end('done', 'text');
      const { ofAccount } = callKeys(call.account, call.owner);
      const many = Array.from({ length: MOST_CALLS_OF_ACCOUNT - 2 }, (_, n) => [clock.ms + 5_000 + n, `x${n}`]);
      await redis().call('zadd', ofAccount, ...many.flat());
      const refused = { ...call, owner: `${call.owner}x`, key: 'l' };
      await running(await one.begin(refused)).end('forget');
      expect((await one.begin(refused)).answer).toBe('RUN');
      const next = { ...call, owner: `${call.owner}y` };
      expect(await one.begin(next)).toEqual({ answer: 'MANY', leftMs: 5_000 });
      expect(await one.begin(call)).toEqual({ answer: 'DONE', text: 'text' });
      expect((await one.begin({ ...next, account: `${call.account}x` })).answer).toBe('RUN');
      clock.ms += 5_000;
      expect((await one.begin(next)).answer).toBe('RUN');
    });

    test('does not return a stored response to another owner', async () => {
      const { one, call } = start();
      const other = { ...call, owner: `${call.owner}x` };
      for (const each of [call, other]) await running(await one.begin(each)).end('done', `text of ${each.owner}`);
      const stored = Object.entries(await redis().readHash(await nameOf(call))).flat();
      await redis().call('hset', await nameOf(other), ...stored);
      expect(await one.begin(other)).toEqual({ answer: 'CONFLICT' });
    });

    test('conflicts if the root key was replaced, so that nothing is done twice', async () => {
      const { clock, one, call } = start();
      const { end } = running(await one.begin(call));
      await end('done', 'text');
      const other = createKeyedCalls(redis(), keyRingOf(Buffer.alloc(32, 8)), () => clock.ms);
      expect(await other.begin(call)).toEqual({ answer: 'CONFLICT' });
    });
  });

  test('that started before a rotation continues with its root key, and its response can still be read', async () => {
    const { clock, call } = start();
    const [old, next] = [7, 8].map(n => ({ name: `${n}`, secret: Buffer.alloc(32, n) }));
    if (old === undefined || next === undefined) throw new Error('two keys');
    const keys = createKeyRing([old]);
    const calls = createKeyedCalls(redis(), keys, () => clock.ms);
    const { seed, end } = running(await calls.begin(call));
    expect(seed.split('.')[0]).toBe(keys.oldest().id);
    await end('release');
    keys.replace([old, next]);
    keys.follow(keys.newest().fingerprint);
    const again = running(await calls.begin(call));
    expect(again.seed).toBe(seed);
    await again.end('done', 'text');
    keys.follow(keys.oldest().fingerprint);
    expect(await calls.begin(call)).toEqual({ answer: 'DONE', text: 'text' });
    expect(running(await calls.begin({ ...call, key: 'l' })).seed.split('.')[0]).toBe(keys.oldest().id);
  });

  /** Returns the key of the only call of an owner. */
  async function nameOf({ account, owner }: KeyedCall): Promise<string> {
    const names = (await redis().call('zrange', callKeys(account, owner).calls, 0, -1)) as string[];
    expect(names).toHaveLength(1);
    return callKeys(account, owner).call(names[0] as string);
  }
});

import { randomBytes } from 'node:crypto';
import { createTestPart, event, START_MS, type TestPart } from '../../../../test/support/part/part.ts';
import type { RedisClient } from '../../../redis/client.ts';
import { accountKeys } from '../../../redis/keys.ts';
import type { ScriptClient } from '../../call.ts';
import { createIngest, type PartEvent } from '../../log/ingest.ts';
import { createIngestWithin } from '../ingest-within.ts';
import { createSpace } from '../space.ts';

export const HOUR_MS = 3_600_000;

/** Returns a list with `count` times the same value. */
export const repeat = <T>(value: T, count: number): T[] => Array.from({ length: count }, () => value);

/**
 * Creates parts of one account with this limit of stored bytes, and a clock for all of them. Events expire after an
 * hour.
 */
export async function startAccount(redis: RedisClient, limit: number | undefined, count = 1) {
  const account = `acc_${randomBytes(8).toString('hex')}`;
  const clock = { ms: START_MS, monotonicMs: 0 };
  const parts = await Promise.all(
    Array.from({ length: count }, async () => {
      const t = createTestPart(redis);
      await t.setUp({}, []);
      await t.change(
        { kind: 'meta', field: 'payer', value: account },
        { kind: 'meta', field: 'retentionMs', value: String(HOUR_MS) },
      );
      return t;
    }),
  );
  const setLimit = async (bytes: number | undefined, ...of: readonly TestPart[]) => {
    const value = bytes === undefined ? '' : String(bytes);
    for (const t of of.length > 0 ? of : parts) await t.change({ kind: 'meta', field: 'storedMax', value });
  };
  await setLimit(limit);
  const client = (t: TestPart) => ({ ...t.client, call: redis.call });
  const spaceOf = (t: TestPart, of: ScriptClient = t.client) => createSpace({ ...client(t), ...of });
  const replicaOf = (t: TestPart, of?: ScriptClient) =>
    createIngestWithin({
      ingest: createIngest(of ?? t.client, () => clock.ms),
      space: spaceOf(t, of),
      nowMs: () => clock.ms,
      monotonicMs: () => clock.monotonicMs,
    });
  /**
   * Stores events with bodies of these sizes through one call, and returns the answers. Each of them costs 250 bytes
   * more.
   */
  async function send(
    t: TestPart,
    sizes: readonly number[],
    ingest: ReturnType<typeof createIngestWithin> = replicaOf(t),
  ): Promise<string[]> {
    const events: PartEvent[] = sizes.map(size => event('', { meta: '', body: Buffer.alloc(size) }));
    const answer = await ingest(t.part, 'c1', events);
    if (answer.answer !== 'OK') throw new Error(answer.answer);
    return answer.events.map(each => each.answer);
  }
  const sum = async (numbers: readonly Promise<unknown>[]) =>
    (await Promise.all(numbers)).reduce<number>((total, each) => total + Number(each), 0);
  /** Returns the stored bytes of all parts. */
  const stored = () => sum(parts.map(async t => (await t.hash('meta')).bytes ?? 0));
  /** Returns the number of stored events of all parts. */
  const events = () => sum(parts.map(t => redis.call('xlen', t.keys.log)));
  const pass = (ms: number) => {
    clock.ms += ms;
    clock.monotonicMs += ms;
    for (const t of parts) t.clock.ms = clock.ms;
  };
  /** Returns the number of bytes that each part may store. */
  const granted = async () =>
    Object.values(await redis.readHash(accountKeys(account).space)).map(text => Number(text.split(' ')[1]));
  return {
    account,
    parts,
    first: parts[0] as TestPart,
    clock,
    setLimit,
    spaceOf,
    replicaOf,
    send,
    stored,
    events,
    pass,
    granted,
  };
}

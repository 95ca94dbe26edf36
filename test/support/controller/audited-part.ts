import { createAdvance } from '../../../src/part/catchup/advance.ts';
import { type Part, partKeys, slotOf } from '../../../src/part/keys.ts';
import { createIngest } from '../../../src/part/log/ingest.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import { CLUSTER_KEYS, integrationKeys } from '../../../src/redis/keys.ts';
import { createAuditedTenant } from './audited-tenant.ts';

/** The fields of meta that the controller does not write. */
const PROGRESS = new Set([
  'fence',
  'version',
  'granted',
  'ledger',
  'ended',
  'base',
  'used',
  'bytes',
  'tail',
  'in',
  'out',
  'ids',
]);
/** An activation. Its start depends on the history. */
const ENTRY = /([0-9a-v]{8})[0-9a-f]{15}/g;

/** Creates an audited tenant with one stream. */
export async function createAuditedPart(redis: RedisClient) {
  const t = await createAuditedTenant(redis);
  // Scripts use the Redis time. Group keys have been open for some time.
  t.clock.ms = Date.now() - 60_000;
  await t.begin(['red', 'green', 'blue']);
  const { meta } = partKeys({ tenant: t.tenant, queue: 'orders', gen: '', number: 0 });
  const gen = (await redis.call('hget', meta, 'gen')) as string;
  const part: Part = { tenant: t.tenant, queue: 'orders', gen, number: 0 };
  const inc = (await redis.call('hget', integrationKeys(t.integration).sub(t.sub), 'inc')) as string;
  const k = partKeys(part);
  const ingest = createIngest(redis);
  const advance = createAdvance(redis);
  return {
    t,
    part,
    k,
    name: `${t.tenant}:orders:0`,
    slot: slotOf(t.sub, inc),
    async editRow(run: RedisClient['call'], edit: (row: string) => string) {
      const slot = slotOf(t.sub, inc);
      await run('hset', k.subs, slot, edit((await run('hget', k.subs, slot)) as string));
    },
    /** The expected state of the part, and of the list of parts. */
    async dump() {
      const hash = async (key: string) => redis.readHash(key);
      const fields = Object.entries(await hash(k.meta)).filter(([field]) => !PROGRESS.has(field));
      const lists = Object.entries(await hash(k.keys)).map(([groupKey, list]) => [
        groupKey,
        list.replaceAll(ENTRY, '$1'),
      ]);
      return {
        listed: await redis.call('hget', CLUSTER_KEYS.parts, `${t.tenant}:orders:0`),
        meta: Object.fromEntries(fields),
        keys: Object.fromEntries(lists),
        rows: await hash(k.subs),
        endpoints: await hash(k.endpoints),
      };
    },
    async send(...groupKeys: string[]) {
      const cfgv = (await redis.call('hget', k.meta, 'cfgv')) as string;
      const events = groupKeys.map(groupKey => ({ groupKey, meta: '{}', body: Buffer.from('body') }));
      return (await ingest(part, cfgv, events)).answer;
    },
    /** Continues routing, regardless of the remaining tokens of its account. */
    async advanceAll() {
      await redis.call('hdel', k.meta, 'granted');
      for (;;) {
        const answer = await advance(part);
        if (answer.answer !== 'OK' || !answer.more) return answer;
      }
    },
    /** Returns the references that have been routed to the subscription. */
    async routed() {
      const text = (await redis.call('hget', k.counts, slotOf(t.sub, inc))) as string | null;
      return Number((text ?? '0 0').split(' ')[1]);
    },
  };
}

export type AuditedPart = Awaited<ReturnType<typeof createAuditedPart>>;

import { tenantId } from '../../../src/core/ids/ids.ts';
import { readPart } from '../../../src/part/inbox/find-part.ts';
import { createPartInboxReader } from '../../../src/part/inbox/inbox-reader.ts';
import { createFindRecordedSlot } from '../../../src/part/inbox/recorded-slot.ts';
import { inboxRefOf } from '../../../src/part/inbox/ref-names.ts';
import { partKeys } from '../../../src/part/keys.ts';
import type { RedisClient } from '../../../src/redis/client.ts';
import type { InboxRef } from '../../../src/redis/inbox-store.ts';
import type { NamedScript } from '../../../src/redis/named-scripts.ts';
import type { BarrierWorld, Partner } from './barrier-world.ts';

/** Before all refs. */
const NONE = '0-0';
const PAGE = 250;

const READ_LIST: NamedScript = {
  name: 'read-list',
  source: "#!lua flags=no-writes\nreturn redis.call('HGET', KEYS[1], ARGV[1])",
  keys: ['lists'],
  listedKeys: undefined,
  args: ['slot'],
  takesMore: false,
};

/** What was routed, as parts say it. */
export function viewParts(
  redis: RedisClient,
  producer: string,
  inboxOf: (partner: Partner, queue: string) => InboxRef,
): Pick<BarrierWorld, 'newest' | 'routedSince' | 'streamIds'> {
  const findSlot = createFindRecordedSlot(redis);
  const reader = createPartInboxReader(redis, findSlot);

  async function newestOf(inbox: InboxRef): Promise<string> {
    const at = await findSlot(inbox);
    if (at === undefined) throw new Error('no part');
    // The list of a slot grows at its end: 6 bytes of the ms, 2 of the sequence.
    const call = { keys: partKeys(at.part), args: { slot: at.slot } };
    const list = (await redis.runNamedBuffers(READ_LIST, call)) as Buffer | null;
    if (list === null || list.length <= 8) return NONE;
    const [ms, sequence] = [list.readUIntBE(list.length - 8, 6), list.readUInt16BE(list.length - 2)];
    return inboxRefOf(ms.toString(16).padStart(11, '0') + sequence.toString(16).padStart(4, '0'));
  }

  async function listSince(inbox: InboxRef, mark: string): Promise<{ id: string; groupKey: string }[]> {
    const found: { id: string; groupKey: string }[] = [];
    let cursor = mark === NONE ? undefined : Buffer.from(mark).toString('base64url');
    do {
      const page = await reader.list(inbox, { limit: PAGE, cursor });
      if (page.answer !== 'OK') throw new Error(page.answer);
      found.push(...page.events.map(({ ref, groupKey = '' }) => ({ id: ref, groupKey })));
      cursor = page.cursor;
    } while (cursor !== undefined);
    return found;
  }

  return {
    newest: async (partner, queues) =>
      new Map(await Promise.all(queues.map(async queue => [queue, await newestOf(inboxOf(partner, queue))] as const))),
    routedSince: async (partner, marks) =>
      (await Promise.all([...marks].map(([queue, mark]) => listSince(inboxOf(partner, queue), mark)))).flat(),
    streamIds: async queue => {
      const part = await readPart(redis, tenantId(producer), queue);
      if (part === undefined) throw new Error('no part');
      const ids = new Map<string, string>();
      for (let after = NONE; ; ) {
        const entries = (await redis.call(
          'xrange',
          partKeys(part).log,
          `(${after}`,
          '+',
          'COUNT',
          1_000,
        )) as unknown as [string, string[]][];
        for (const [id, fields] of entries) {
          const [ms, sequence] = id.split('-').map(Number) as [number, number];
          const ref = ms.toString(16).padStart(11, '0') + sequence.toString(16).padStart(4, '0');
          ids.set((JSON.parse(fields[fields.indexOf('m') + 1] as string) as { i: string }).i, inboxRefOf(ref));
          after = id;
        }
        if (entries.length < 1_000) return ids;
      }
    },
  };
}

import { readPart } from '../../../src/part/inbox/find-part.ts';
import { createPartInboxReader } from '../../../src/part/inbox/inbox-reader.ts';
import { slotOf } from '../../../src/part/keys.ts';
import { createReadSlots } from '../../../src/part/state/slots.ts';
import { connectRedis, type RedisClient } from '../../../src/redis/client.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import type { InboxState } from './audit.ts';

const OPEN = ['pending', 'inflight', 'retrying'] as const;
const PAGE = 250;

/** Reads the inbox of a subscription from the part of its stream. */
export async function readInboxOfPart(
  url: string,
  stream: { readonly tenant: string; readonly queue: string },
  inbox: { readonly sub: string; readonly inc: string },
): Promise<InboxState> {
  const redis = await connectRedis(url, createLogger({ level: 'silent' }));
  try {
    return await readState(redis, stream, inbox);
  } finally {
    await redis.close();
  }
}

async function readState(
  redis: RedisClient,
  { tenant, queue }: { readonly tenant: string; readonly queue: string },
  { sub, inc }: { readonly sub: string; readonly inc: string },
): Promise<InboxState> {
  const part = await readPart(redis, tenant, queue);
  if (part === undefined) throw new Error(`${queue} has no part`);
  const slot = slotOf(sub, inc);
  const reader = createPartInboxReader(redis, async () => ({ part, slot }));
  const routed: { id: string; groupKey: string }[] = [];
  let open = 0;
  let claimed = 0;
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor !== undefined; isFirst = false) {
    const page = await reader.list({ integration: '', sub, inc }, { limit: PAGE, ...(cursor && { cursor }) });
    if (page.answer !== 'OK') throw new Error(page.answer);
    for (const { ref, replayId, groupKey = '', progress } of page.events) {
      if (replayId === undefined) routed.push({ id: ref, groupKey });
      if (OPEN.some(state => state === progress?.state)) open++;
      if (progress?.state === 'inflight') claimed++;
    }
    cursor = page.cursor;
  }
  const [state] = await createReadSlots(redis)(part, [slot]);
  const counters = Object.entries(state?.deliveries ?? {}).flatMap(([field, value]) =>
    field.startsWith('n:') && Number(value) > 0 ? [[field.slice(2), Number(value)] as const] : [],
  );
  return { routed, open, claimed, counters: Object.fromEntries(counters) };
}

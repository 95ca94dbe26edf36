import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const CLUSTER_STORED = readNamedScript(new URL('cluster-stored.lua', import.meta.url));
/** Bytes are noted in multiples of this, rounded up. A part is noted again only after its multiple has changed. */
const UNIT_BYTES = 65_536;
/** A part that is used is noted again after this time, in case Redis has lost its entry. */
const REPEAT_MS = 300_000;

/** Entry of a part that was noted, for the next call. */
export interface Noted {
  readonly text: string;
  readonly atMs: number;
}

/** Stored events of a part. */
export interface StoredEvents {
  readonly tenant: string;
  readonly queue: string;
  /** Account of the workspace. Empty without one. */
  readonly payer: string;
  /** Rounded up to 64 KiB. */
  readonly bytes: number;
  /** Key in the slot of the part. */
  readonly key: string;
}

/** Notes the stored bytes of a part where every ingress reads them. */
export type NoteStored = (part: Part, last?: Noted) => Promise<Noted | undefined>;

/**
 * Creates the function that notes a part. It writes nothing if the stored bytes have hardly changed since `last`, and returns
 * undefined if the part is gone.
 *
 * @param nowMs monotonic clock in milliseconds
 */
export function createNoteStored(
  redis: ScriptClient & Pick<RedisClient, 'call'>,
  nowMs = () => performance.now(),
): NoteStored {
  return async function noteStored(part, last) {
    const { meta } = partKeys(part);
    const reply = (await redis.call('hmget', meta, 'gen', 'bytes', 'payer')) as (string | null)[];
    const [gen, bytes, payer] = reply;
    if (gen !== part.gen) return undefined;
    const rounded = Math.ceil(Number(bytes ?? 0) / UNIT_BYTES) * UNIT_BYTES;
    const text = `${rounded} ${payer ?? ''}`;
    if (last?.text === text && nowMs() - last.atMs < REPEAT_MS) return last;
    const name = `${part.tenant}:${part.queue}:${part.number}`;
    const args = { name, gen: part.gen, bytes: rounded, payer: payer ?? '' };
    await callScript(redis, CLUSTER_STORED, { keys: CLUSTER_KEYS, args });
    return { text, atMs: nowMs() };
  };
}

/** Reads the parts with stored events. An active dispatcher notes those of its parts every 5 s. */
export async function readStored(redis: Pick<RedisClient, 'readHash'>): Promise<StoredEvents[]> {
  const stored: StoredEvents[] = [];
  for (const [name, entry] of Object.entries(await redis.readHash(CLUSTER_KEYS.stored))) {
    const [tenant = '', queue = '', number = ''] = name.split(':');
    const [gen = '', bytes = '', payer = ''] = entry.split(' ');
    const { meta: key } = partKeys({ tenant, queue, gen, number: Number(number) });
    stored.push({ tenant, queue, payer, bytes: Number(bytes), key });
  }
  return stored;
}

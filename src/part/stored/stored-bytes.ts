import type { RedisClient } from '../../redis/client.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { type Part, partKeys } from '../keys.ts';

const CLUSTER_STORED = readNamedScript(new URL('cluster-stored.lua', import.meta.url));
/**
 * The number of bytes is recorded in multiples of this, rounded up. A part is only recorded again if its multiple has
 * changed.
 */
const UNIT_BYTES = 65_536;
/** If a part is being used, it is recorded again after this time. Needed in case its entry in Redis has been lost. */
const REPEAT_MS = 300_000;

/** The entry of a part that has been recorded. The entry is used for the next call. */
export interface Noted {
  readonly text: string;
  readonly atMs: number;
}

/** The events that are stored in a part. */
export interface StoredEvents {
  readonly tenant: string;
  readonly queue: string;
  /** The workspace account. If there is no account, this is empty. */
  readonly payer: string;
  /** Rounded up to 64 KiB. */
  readonly bytes: number;
  /** Key in the part's slot. */
  readonly key: string;
}

/** The stored bytes and the account of a part, as reported by the part. */
export interface PartStored {
  readonly bytes: number;
  /** Empty if there is no account. */
  readonly payer: string;
}

/** Records the stored bytes of a part in a place where they can be read by every ingress. */
export type NoteStored = (part: Part, stored: PartStored, last?: Noted) => Promise<Noted>;

/**
 * Creates a function that records a part. If the stored bytes have hardly changed since `last`, nothing is written.
 *
 * @param nowMs monotonic clock in milliseconds
 */
export function createNoteStored(redis: ScriptClient, nowMs = () => performance.now()): NoteStored {
  return async function noteStored(part, { bytes, payer }, last) {
    const rounded = Math.ceil(bytes / UNIT_BYTES) * UNIT_BYTES;
    const text = `${rounded} ${payer}`;
    if (last?.text === text && nowMs() - last.atMs < REPEAT_MS) return last;
    const name = `${part.tenant}:${part.queue}:${part.number}`;
    const args = { name, gen: part.gen, bytes: rounded, payer };
    await callScript(redis, CLUSTER_STORED, { keys: CLUSTER_KEYS, args });
    return { text, atMs: nowMs() };
  };
}

/** Reads all parts that have stored events. Active dispatchers record their parts every 5 s, or 30 s if there are few events. */
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

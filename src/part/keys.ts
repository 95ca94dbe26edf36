import { createHash } from 'node:crypto';

/** A part of a stream: a single Redis slot that contains everything about its events. */
export interface Part {
  /** `ten_…` */
  readonly tenant: string;
  readonly queue: string;
  /** The stream generation. */
  readonly gen: string;
  /**
   * The number of the part within this stream. Unless it is configured otherwise, a stream has a single part with the
   * number 0.
   */
  readonly number: number;
}

/** The number of the part of a stream. Each stream has one part. */
export const PART_NUMBER = 0;
/** The generation of the remains of a part that was removed. */
export const REMOVED = '-';
export const HOUR_MS = 3_600_000;
/** The width of a bucket of records. */
export const RECORDS_MS = 6 * HOUR_MS;

const tagOf = ({ tenant, queue, number }: Omit<Part, 'gen'>) => `{q:${tenant}:${queue}:${number}}`;

/** Returns the `meta` key of a part, without creating all other keys. */
export const metaKeyOf = (part: Omit<Part, 'gen'>): string => `${tagOf(part)}:meta`;

/**
 * All of the part keys. All of these keys are in the same slot. A script declares the keys that it uses. All except
 * `meta` contain the stream generation, so a recreated stream doesn't see any old data.
 */
export function partKeys(part: Part) {
  const tag = tagOf(part);
  const key = (name: string) => `${tag}:${name}:${part.gen}`;
  return {
    /** HASH, `log/meta.ts`: settings from the controller, and the part progress. */
    meta: metaKeyOf(part),
    /**
     * STREAM: g(roup key), m(etadata), s(ize of the body), c(ost in the quota), r(outed to: 5 bytes a slot), b (the
     * rest of the body, `log/body-pieces.ts`).
     */
    log: key('log'),
    /**
     * HASH: ref → body without its rest. If a field is deleted, its memory is freed. The memory of an entry in a Redis
     * stream is not.
     */
    body: key('body'),
    /** HASH: '' (marker), group key → slots that it is active for, `gate/activations.lua`. */
    keys: key('keys'),
    /** HASH: slot → row, `gate/subscription-row.ts`. Written by the controller alone. */
    subs: key('subs'),
    /** HASH: slot → endpoint of a subscription, sealed. Written by the controller alone. */
    endpoints: key('ends'),
    /** HASH: slot → last routed ref, for slots that are behind. */
    positions: key('pos'),
    /** HASH: ref → slots that it was routed to later, 5 bytes each. */
    late: key('late'),
    /** HASH: lane → flag, ref, dispatcher, `lanes/lanes.lua`. */
    claims: key('cl'),
    /** HASH: lane → state, `lanes/lanes.lua`. */
    lanes: key('lane'),
    /** ZSET by lex: lane key, NUL, ref. Waiting events only, without claimed ones. */
    pending: key('pend'),
    /** ZSET by lex: slot, class, due, rest of the lane, of lanes that may be claimed. */
    waiting: key('wait'),
    /** ZSET: slot with waiting lanes → when it was served last, or got its turn, ms. The first one is served next. */
    turns: key('turn'),
    /** ZSET: lane that waits for a retry → due, ms. Also slot and \2 → when it may be served again. */
    retries: key('retry'),
    /** HASH: key of a lane, NUL, ref → attempts, lapses after the last one, due, failed attempts. */
    tries: key('try'),
    /** HASH: slot and group key deactivated with open events → 1, or 2 and the progress of unparking. */
    off: key('off'),
    /** HASH: slot → counters, `lanes/counts.lua`. */
    counts: key('n'),
    /** HASH: slot → state of the breaker; `slot:p` → when the bucket of its pace was empty. */
    health: key('health'),
    /** HASH: slot → its events, in chunks, `lists/lists.lua`. */
    lists: key('in'),
    /** HASH: slot, ref → ids of its replays. */
    replays: key('rp'),
    /** HASH: slot → first dead letter in the last hour with dead letters (ms, ref); newest ref of all. */
    deadLetters: key('dead'),
    /** ZSET by lex: slot, ref (and `:replay`) of dead, skipped and expired ones. */
    final: key('fin'),
    /** HASH: responses to failed attempts, `claims/answers.lua`. */
    answers: key('answers'),
    /** HASH: hour → why events went nowhere in it, `reasons/reasons.lua`. */
    reasons: key('why'),
    /** HASH: slot and last routed ref before a skip → ref of the last skipped event. */
    skips: key('skip'),
    /** HASH: slot → end of its last pause that skipped waiting events, in ms. Always later than the previous value. */
    skipped: key('skipped'),
    /** ZSET: slot of a deleted subscription → time at which its remains are removed, in ms. */
    dropped: key('drop'),
    /** HASH: slot of a deleted subscription → end of its retention (13 digits, in ms), and its inbox. */
    former: key('former'),
    /** HASH: dispatcher → until, limit, held, pushed, room in bytes, bytes pushed. */
    ready: key('ready'),
    /** The channel that is used for pushes. */
    channel: key('push'),
    /** HASH: hash of a sender's event id → ref, by the hour of the ref. */
    ids: (hour: number) => key(`id:${hour}`),
    /** HASH: chunk number of a replay, or `ref` of a test event (`test.<call>`) → reply to the caller. Expires. */
    chunks: (slot: string, replay: string) => key(`rpl:${slot}:${replay}`),
    /** HASH: ref → records, by six hours of the ref. */
    records: (bucket: number) => key(`rec:${bucket}`),
  };
}

/** Returns the bucket for the records of an event that was accepted at `ms`. */
export function recordsBucketOf(ms: number): number {
  return Math.floor(ms / RECORDS_MS);
}

const BASE32HEX = '0123456789abcdefghijklmnopqrstuv';

/**
 * Returns the slot that a subscription has within its stream: a hash with 8 characters in base32hex (40 bits). Slots
 * don't need to be allocated.
 */
export function slotOf(subscription: string, inc: string): string {
  let bits = createHash('sha256').update(`${subscription}.${inc}`).digest().readUIntBE(0, 5);
  let slot = '';
  for (let i = 0; i < 8; i++) {
    slot = BASE32HEX[bits % 32] + slot;
    bits = Math.floor(bits / 32);
  }
  return slot;
}

/** Returns the slots of a packed list. Each of them uses 5 bytes. */
export function unpackSlots(packed: Buffer): string[] {
  const slots: string[] = [];
  for (let at = 0; at < packed.length; at += 5) {
    slots.push(packed.readUIntBE(at, 5).toString(32).padStart(8, '0'));
  }
  return slots;
}

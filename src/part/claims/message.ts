/** A claim. A claim allows its dispatcher to make an attempt. */
export interface Claim {
  readonly slot: string;
  /** Used to identify the claim when its result is reported by `exchange`. */
  readonly lane: string;
  readonly ref: string;
  /** True if there are more events behind the event in its lane. */
  readonly behind: boolean;
  /** The number of attempts which have failed. */
  readonly attempts: number;
  /**
   * The number of earlier claims for this event which have expired because their dispatcher has crashed or was stalled.
   */
  readonly lapses: number;
  readonly replay: string | undefined;
}

/** Returns true if this event is claimed alone, because its claims have lapsed twice (see `lanes/tries.lua`). */
export function isAlone({ lapses }: Claim): boolean {
  return lapses >= 2;
}

/** An event and its claims, in the format of `lanes/message.lua`. */
export interface ClaimedEvent {
  readonly ref: string;
  readonly groupKey: string;
  readonly meta: string;
  /** Body size in bytes. Undefined for events that are not in the log, i.e. test events and expired events. */
  readonly size: number | undefined;
  /** Absent if the body is too large for the message. Read it separately. */
  readonly body: Buffer | undefined;
  readonly claims: readonly Claim[];
}

/** A message that is pushed to a part's dispatchers. */
export interface Push {
  /** The owner of these claims. If there are no claims, this is undefined. */
  readonly dispatcher: string | undefined;
  /** Total claims and bytes pushed to this dispatcher, including these. A difference indicates a lost message. */
  readonly pushed: number;
  readonly bytes: number;
  /** True if there are events waiting which have not been claimed. */
  readonly waiting: boolean;
  /** Claimed lanes (of any dispatcher) which now have more events behind them. */
  readonly behind: readonly string[];
  /** The time at which the claims were made, in milliseconds of the part's clock. */
  readonly nowMs: number;
  /** The version of the part. It changes with the rows of subscriptions, their endpoints, and the retention. */
  readonly version: string;
  readonly events: readonly ClaimedEvent[];
}

const CLAIM = /^([^+~:!]+)(\+)?(~)?(?::(\d+):(\d+))?(?:!(.+))?$/;

function parseClaim(text: string, ref: string, groupKey: string): Claim {
  const [, slot = '', behind, unordered, attempts = '0', lapses = '0', replay] = CLAIM.exec(text) ?? [];
  const key = slot + groupKey + (replay === undefined ? '' : `\x01${replay}`);
  const lane = unordered === undefined ? key : `${key}\0${ref}`;
  return { slot, lane, ref, behind: behind !== undefined, attempts: +attempts, lapses: +lapses, replay };
}

/** A message is only copied if it is larger than this number of bytes. */
const SMALL_MESSAGE = 4_096;

/**
 * Returns the body between these positions. A claim can be held for as long as its endpoint does not respond. To avoid
 * keeping the whole message for the body of a single event, the body is copied unless it makes up most of the message.
 */
function bodyOf(message: Buffer, from: number, to: number): Buffer {
  const body = message.subarray(from, to);
  return message.length <= SMALL_MESSAGE || body.length * 2 > message.length ? body : Buffer.from(body);
}

/** Reads events from `at` to the end. */
export function parseEvents(text: Buffer, at = 0): ClaimedEvent[] {
  const events: ClaimedEvent[] = [];
  for (let from = at; from < text.length; ) {
    const end = text.indexOf(10, from);
    const [ref = '', keyBytes, metaBytes, bodyBytes, claims = ''] = text.toString('latin1', from, end).split(' ');
    const metaAt = end + 1 + Number(keyBytes);
    const bodyAt = metaAt + Number(metaBytes);
    const groupKey = text.toString('utf8', end + 1, metaAt);
    const size = bodyBytes === 'x' ? undefined : Number(bodyBytes);
    from = bodyAt + Math.max(0, size ?? 0);
    events.push({
      ref,
      groupKey,
      meta: text.toString('utf8', metaAt, bodyAt),
      size: size === undefined ? undefined : Math.abs(size),
      // Nothing, too, has no sign.
      body: size === undefined || size < 0 ? undefined : bodyOf(text, bodyAt, from),
      claims: claims.split(',').map(claim => parseClaim(claim, ref, groupKey)),
    });
  }
  return events;
}

export function parsePush(text: Buffer): Push {
  let at = text.indexOf(10) + 1;
  const [dispatcher, pushed, bytes, waiting, behind, now, version = ''] = text.toString('latin1', 0, at - 1).split(' ');
  const lanes: string[] = [];
  for (let left = Number(behind); left > 0; left--) {
    const from = text.indexOf(32, at) + 1;
    const end = from + Number(text.toString('latin1', at, from - 1));
    lanes.push(text.toString('utf8', from, end));
    at = end;
  }
  return {
    dispatcher: dispatcher === '-' ? undefined : dispatcher,
    pushed: Number(pushed),
    bytes: Number(bytes),
    waiting: waiting === '1',
    behind: lanes,
    nowMs: Number(now),
    version,
    events: parseEvents(text, at),
  };
}

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';
const HALF = 2 ** 40;

/** `value` (below 2^53) as `length` lower-case Crockford characters. */
function encode(value: number, length: number): string {
  let out = '';
  let rest = value;
  for (let index = 0; index < length; index++) {
    out = CROCKFORD[rest % 32] + out;
    rest = Math.floor(rest / 32);
  }
  return out;
}

/** 40 random bits as a number. */
export type Random40 = () => number;

const POOLED = 512;

/** Random numbers out of a pool: five bytes cost as much as a few hundred. `fill` makes all bytes random. */
export function createRandom40(fill: (bytes: Buffer) => void): Random40 {
  const pool = Buffer.alloc(5 * POOLED);
  let next = pool.length;
  return function random40(): number {
    if (next === pool.length) {
      fill(pool);
      next = 0;
    }
    next += 5;
    return pool.readUIntBE(next - 5, 5);
  };
}

/**
 * Makes event ids: `evt_` and a ULID in lower case (48 bits of milliseconds, 80 random bits). They only grow: within a
 * millisecond, or when the clock steps back, the random part is counted up as the ULID specification says for
 * monotonic ones.
 */
export function createEventIds(nowMs: () => number, random40: Random40): () => string {
  let lastMs = -1;
  let high = 0;
  let low = 0;
  let prefix = '';

  return function nextEventId(): string {
    const now = nowMs();
    if (now > lastMs) {
      lastMs = now;
      high = random40();
      low = random40();
      prefix = `evt_${encode(lastMs, 10)}${encode(high, 8)}`;
    } else {
      low += 1;
      if (low === HALF) {
        low = 0;
        high += 1;
        // 2^80 ids of one millisecond: the time moves on instead of the ids starting over.
        if (high === HALF) {
          high = 0;
          lastMs += 1;
        }
        prefix = `evt_${encode(lastMs, 10)}${encode(high, 8)}`;
      }
    }
    return prefix + encode(low, 8);
  };
}

const CROCKFORD = '0123456789abcdefghjkmnpqrstvwxyz';
const HALF = 2 ** 40;

/** Encodes `value` (below 2^53) as `length` lower-case Crockford characters. */
function encode(value: number, length: number): string {
  let out = '';
  let rest = value;
  for (let index = 0; index < length; index++) {
    out = CROCKFORD[rest % 32] + out;
    rest = Math.floor(rest / 32);
  }
  return out;
}

/** Returns 40 random bits in the form of a number. */
export type Random40 = () => number;

const POOLED = 512;

/**
 * Creates a source for random numbers. The numbers are taken from a pool, because it takes as long to generate five
 * bytes as to generate a few hundred. `fill` must fill the buffer with random bytes.
 */
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
 * Creates a generator for event ids. Ids consist of `evt_` and a lower-case ULID, i.e. 48 bits of milliseconds plus 80
 * random bits, and are always increasing. Within the same millisecond, or when the clock moves backward, we increment
 * the random part as described in the ULID specification.
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
        // The random part has overflowed, because there were 2^80 ids within a millisecond. Increment the time so that
        // ids don't start over.
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

/** The memory of a single Redis master. */
export interface MasterMemory {
  readonly usedBytes: number;
  /** maxmemory. 0 without a limit. */
  readonly maxBytes: number;
}

/** The events of a stream which are stored on a master. */
export interface StoredStream {
  readonly tenant: string;
  readonly queue: string;
  /** The workspace account. If there is no account, this is empty. */
  readonly payer: string;
  readonly bytes: number;
}

export interface ShareLimits {
  /**
   * If this fraction of maxmemory is used, accounts that are above their share are refused, starting with the largest.
   */
  readonly memoryPressureRatio: number;
  /** If this fraction of maxmemory is used, everyone is refused. */
  readonly memoryStopRatio: number;
  /** Smallest share. */
  readonly guaranteedBytes: number;
}

/** The account stores more than the current pressure allows. */
export interface OverShare {
  readonly storedBytes: number;
  readonly shareBytes: number;
}

/** The shares of the memory of a single master. */
export interface Shares {
  /**
   * Returns the reason why an event of the stream should be refused, or undefined if it should be accepted.
   * `stream.bytes` should be up to date. This number is used instead of the recorded one, so that a stream
   * can't exceed its share unnoticed if its dispatcher does not exist any more.
   */
  readonly findExcess: (stream: StoredStream) => OverShare | undefined;
}

/**
 * An account this close to the refused size is refused as well. Stored bytes are a few seconds old, so the largest
 * account could otherwise appear to be slightly smaller than itself.
 */
const NEARLY = 0.95;

const accountOf = ({ payer, tenant }: StoredStream) => (payer === '' ? tenant : payer);
const nameOf = ({ tenant, queue }: StoredStream) => `${tenant}/${queue}`;

/**
 * Computes the shares for a master which is under pressure.
 *
 * The memory for events is the memory below the stop ratio that is not used by anything else. This memory is divided
 * evenly among the accounts with stored events. The refused size falls from the size of the largest account (at the
 * pressure ratio) to the share (at the stop ratio), by equal factors. This way, the largest accounts are refused first.
 * An account within its share is never refused.
 */
export function computeShares(
  streams: readonly StoredStream[],
  { usedBytes, maxBytes }: MasterMemory,
  limits: ShareLimits,
): Shares {
  const { memoryPressureRatio: from, memoryStopRatio: to, guaranteedBytes } = limits;
  const ratio = maxBytes === 0 ? 0 : usedBytes / maxBytes;
  const accounts = new Map<string, number>();
  const known = new Map<string, number>();
  let sum = 0;
  for (const stream of streams) {
    sum += stream.bytes;
    accounts.set(accountOf(stream), (accounts.get(accountOf(stream)) ?? 0) + stream.bytes);
    known.set(nameOf(stream), stream.bytes);
  }
  const forEvents = Math.max(0, to * maxBytes - Math.max(0, usedBytes - sum));
  const shareBytes = Math.max(guaranteedBytes, forEvents / Math.max(1, accounts.size));
  let largestBytes = shareBytes;
  for (const bytes of accounts.values()) largestBytes = Math.max(largestBytes, bytes);
  const largest = largestBytes / shareBytes;
  const pressure = Math.min(1, Math.max(0, (ratio - from) / (to - from)));
  const refusedBytes = NEARLY * shareBytes * largest ** (1 - pressure);

  return {
    findExcess(stream) {
      const others = (accounts.get(accountOf(stream)) ?? 0) - (known.get(nameOf(stream)) ?? 0);
      const storedBytes = Math.max(0, others) + stream.bytes;
      return storedBytes > shareBytes && storedBytes >= refusedBytes ? { storedBytes, shareBytes } : undefined;
    },
  };
}

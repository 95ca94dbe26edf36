import type { RedisClient } from '../redis/client.ts';
import { HINT_PARTITIONS, type HintKind, hintKeys, hintPartition } from '../redis/keys.ts';

export interface Hint {
  readonly member: string;
  readonly dueMs: number;
}

export interface Picked {
  readonly members: readonly string[];
  /** Due time of the next hint in the partition. Undefined if there are no hints. */
  readonly nextMs: number | undefined;
}

/**
 * The index of due work: accounts with incomplete replays (`a`) and sandbox runs (`s`). A due time can always be
 * lowered. Raising or removing it requires the token returned by `pick` (compare-and-set), so no wake-up is lost.
 */
export interface HintIndex {
  readonly kind: HintKind;
  /** Ensures that each member is due at `dueMs` or earlier, and wakes up the listeners. */
  readonly lower: (hints: readonly Hint[]) => Promise<void>;
  readonly pick: (partition: number, nowMs: number, most: number, leaseMs: number, token: string) => Promise<Picked>;
  /**
   * Sets the next due time of a hint or removes it (`null`). Returns false if the hint was lowered or picked again in
   * the meantime. In this case, it is due at the next time at the latest.
   */
  readonly settle: (partition: number, member: string, token: string, nextMs: number | null) => Promise<boolean>;
  /**
   * Calls `onDue(partition, ms, members)` when hints have been lowered (if there are too many members, they are not
   * included). If messages may have been lost, it is called for every partition, with ms 0 and no members.
   */
  readonly listen: (onDue: (partition: number, dueMs: number, members: readonly string[]) => void) => void;
}

interface Settling {
  readonly args: readonly [member: string, token: string, next: number | ''];
  readonly resolve: (settled: boolean) => void;
  readonly reject: (error: Error) => void;
}

const SETTLE_AT_ONCE = 256;

export function createHintIndex(redis: RedisClient, kind: HintKind): HintIndex {
  const keys = Array.from({ length: HINT_PARTITIONS }, (_, partition) => hintKeys(kind, partition));
  const at = (partition: number) => keys[partition] as ReturnType<typeof hintKeys>;
  const settling: Settling[][] = keys.map(() => []);
  const busy = new Set<number>();

  /** All settlements collected during the last call are sent in a single call. */
  async function flush(partition: number): Promise<void> {
    busy.add(partition);
    for (;;) {
      const batch = (settling[partition] as Settling[]).splice(0, SETTLE_AT_ONCE);
      if (batch.length === 0) break;
      try {
        const { due, tokens } = at(partition);
        const words = (await redis.run(
          'settle',
          [due, tokens],
          batch.flatMap(({ args }) => args),
        )) as string[];
        for (const [i, { resolve }] of batch.entries()) resolve(words[i] === 'OK');
      } catch (error) {
        for (const { reject } of batch) reject(error as Error);
      }
    }
    busy.delete(partition);
  }

  return {
    kind,
    async lower(hints) {
      const byPartition = new Map<number, (string | number)[]>();
      for (const { member, dueMs } of hints) {
        const partition = hintPartition(member);
        let args = byPartition.get(partition);
        if (args === undefined) byPartition.set(partition, (args = [at(partition).channel]));
        args.push(member, dueMs);
      }
      await Promise.all(
        [...byPartition].map(([partition, args]) =>
          redis.run('lower', [at(partition).due, at(partition).tokens], args),
        ),
      );
    },
    async pick(partition, nowMs, most, leaseMs, token) {
      const { due, tokens } = at(partition);
      const [next, ...members] = (await redis.run('pick', [due, tokens], [nowMs, most, leaseMs, token])) as string[];
      return { members, nextMs: next === '' ? undefined : Number(next) };
    },
    settle(partition, member, token, nextMs) {
      return new Promise((resolve, reject) => {
        const waiting = settling[partition] as Settling[];
        waiting.push({ args: [member, token, nextMs ?? ''], resolve, reject });
        if (waiting.length === 1 && !busy.has(partition)) queueMicrotask(() => void flush(partition));
      });
    },
    listen(onDue) {
      const partitions = new Map(keys.map((each, partition) => [each.channel, partition]));
      redis.subscribe(
        [...partitions.keys()],
        (channel, message) => {
          const [ms, ...members] = message.split(' ');
          onDue(partitions.get(channel) as number, Number(ms), members);
        },
        () => {
          for (let partition = 0; partition < HINT_PARTITIONS; partition++) onDue(partition, 0, []);
        },
      );
    },
  };
}

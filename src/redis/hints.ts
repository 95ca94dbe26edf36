import type { RedisClient } from './client.ts';
import { HINT_PARTITIONS, type HintKind, hintKeys, hintPartition } from './keys.ts';

export interface Hint {
  readonly member: string;
  readonly dueMs: number;
}

export interface Picked {
  readonly members: readonly string[];
  /** When the next hint of the partition is due; undefined when it has none. */
  readonly nextMs: number | undefined;
}

/**
 * The index of work that is due: of queues (`r`) for routers, of subscriptions (`d`) for dispatchers. Lowering is free;
 * raising and removing is compare-and-set on the token that `pick` gave, so no wake-up is ever lost.
 */
export interface HintIndex {
  readonly kind: HintKind;
  /** Makes each member due no later than `dueMs`, and wakes those who listen. */
  readonly lower: (hints: readonly Hint[]) => Promise<void>;
  readonly pick: (partition: number, nowMs: number, most: number, leaseMs: number, token: string) => Promise<Picked>;
  /** Sets the hint's next time, or removes it (`null`); false when it was lowered or picked again meanwhile. */
  readonly settle: (member: string, token: string, nextMs: number | null) => Promise<boolean>;
  /** `onDue(partition, ms)` when a hint was lowered; every partition with ms 0 when messages may have been missed. */
  readonly listen: (onDue: (partition: number, dueMs: number) => void) => void;
}

export function createHintIndex(redis: RedisClient, kind: HintKind): HintIndex {
  const keys = Array.from({ length: HINT_PARTITIONS }, (_, partition) => hintKeys(kind, partition));
  const at = (partition: number) => keys[partition] as ReturnType<typeof hintKeys>;
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
    async settle(member, token, nextMs) {
      const { due, tokens } = at(hintPartition(member));
      return (await redis.run('settle', [due, tokens], [member, token, nextMs ?? ''])) === 'OK';
    },
    listen(onDue) {
      const partitions = new Map(keys.map((each, partition) => [each.channel, partition]));
      redis.subscribe(
        [...partitions.keys()],
        (channel, message) => onDue(partitions.get(channel) as number, Number(message)),
        () => {
          for (let partition = 0; partition < HINT_PARTITIONS; partition++) onDue(partition, 0);
        },
      );
    },
  };
}

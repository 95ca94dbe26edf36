import type { Hint, HintIndex, Picked } from '../../hints/hints.ts';
import { hintPartition } from '../../redis/keys.ts';

/** An index of hints in memory which behaves like the scripts. All calls are counted. */
export function createMemoryHints() {
  const due = new Map<string, number>();
  const tokens = new Map<string, string>();
  const listeners: ((partition: number, ms: number, members: readonly string[]) => void)[] = [];
  const calls = { pick: 0, settle: 0 };
  /** If set, calls wait for this promise, so that other calls are processed in between. */
  const gate: { pick?: Promise<void>; settle?: Promise<void>; failing?: boolean } = {};

  const hints: HintIndex = {
    kind: 'a',
    lower: async (lowered: readonly Hint[]) => {
      for (const { member, dueMs } of lowered) {
        tokens.delete(member);
        const had = due.get(member);
        if (had === undefined || had > dueMs) due.set(member, dueMs);
        for (const listener of listeners) listener(hintPartition(member), dueMs, [member]);
      }
    },
    pick: async (partition, nowMs, most, leaseMs, token): Promise<Picked> => {
      calls.pick++;
      await gate.pick;
      if (gate.failing) throw new Error('redis is unavailable');
      const mine = () => [...due].filter(([member]) => hintPartition(member) === partition);
      const members = mine()
        .filter(([, ms]) => ms <= nowMs)
        .slice(0, most)
        .map(([member]) => member);
      for (const member of members) {
        due.set(member, nowMs + leaseMs);
        tokens.set(member, token);
      }
      const next = Math.min(...mine().map(([, ms]) => ms));
      return { members, nextMs: Number.isFinite(next) ? next : undefined };
    },
    settle: async (_partition, member, token, nextMs) => {
      calls.settle++;
      await gate.settle;
      if (gate.failing) throw new Error('redis is unavailable');
      if (tokens.get(member) !== token) {
        if (nextMs !== null && (due.get(member) ?? Number.POSITIVE_INFINITY) > nextMs) {
          tokens.delete(member);
          due.set(member, nextMs);
        }
        return false;
      }
      tokens.delete(member);
      if (nextMs === null) due.delete(member);
      else due.set(member, nextMs);
      return true;
    },
    listen: onDue => {
      listeners.push(onDue);
    },
  };
  return { hints, due, tokens, calls, gate };
}

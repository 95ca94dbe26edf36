import type { Clock } from '../../time/clock.ts';

/**
 * A binary heap of keys, ordered by the time at which they become ready. There is at most one live entry for each key.
 */
type DelayHeap = {
  /** Adds a key. If the key is already waiting, the earlier of the two times is used. */
  readonly add: (key: string, readyAtMs: number) => void;
  readonly nextMs: () => number | undefined;
  /** Removes and returns one key that is ready at `nowMs`. */
  readonly take: (nowMs: number) => string | undefined;
  readonly size: () => number;
  readonly clear: () => void;
};

type Entry = { readonly key: string; readonly atMs: number };

export function createDelayHeap(): DelayHeap {
  const heap: Entry[] = [];
  // This map holds the time of the live entry of each key. If an entry has been replaced by an earlier one, it stays in
  // the heap until it reaches the top.
  const live = new Map<string, number>();

  const atMs = (index: number): number => heap[index]?.atMs ?? Number.POSITIVE_INFINITY;

  function swap(a: number, b: number): void {
    const entry = heap[a] as Entry;
    heap[a] = heap[b] as Entry;
    heap[b] = entry;
  }

  function pop(): void {
    const last = heap.pop() as Entry;
    if (heap.length === 0) return;
    heap[0] = last;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      const smaller = atMs(left + 1) < atMs(left) ? left + 1 : left;
      if (atMs(smaller) >= atMs(index)) return;
      swap(index, smaller);
      index = smaller;
    }
  }

  function dropOvertaken(): Entry | undefined {
    for (let top = heap[0]; top !== undefined; top = heap[0]) {
      if (live.get(top.key) === top.atMs) return top;
      pop();
    }
    return undefined;
  }

  return {
    add: (key, readyAtMs) => {
      const waiting = live.get(key);
      if (waiting !== undefined && waiting <= readyAtMs) return;
      live.set(key, readyAtMs);
      heap.push({ key, atMs: readyAtMs });
      for (let index = heap.length - 1; index > 0; ) {
        const parent = (index - 1) >> 1;
        if (atMs(parent) <= atMs(index)) return;
        swap(index, parent);
        index = parent;
      }
    },
    nextMs: () => dropOvertaken()?.atMs,
    take: nowMs => {
      const top = dropOvertaken();
      if (top === undefined || top.atMs > nowMs) return undefined;
      pop();
      live.delete(top.key);
      return top.key;
    },
    size: () => live.size,
    clear: () => {
      heap.length = 0;
      live.clear();
    },
  };
}

/** Calls `onReady` with each key after its delay has passed. A single timer is used for all keys. */
export function createDelayedKeys(clock: Pick<Clock, 'nowMs' | 'setTimer'>, onReady: (key: string) => void) {
  const heap = createDelayHeap();
  let cancelTimer = () => {};
  let timerAtMs = Number.POSITIVE_INFINITY;

  function arm(): void {
    const nextMs = heap.nextMs();
    if (nextMs === undefined || nextMs >= timerAtMs) return;
    cancelTimer();
    timerAtMs = nextMs;
    cancelTimer = clock.setTimer(ripen, nextMs - clock.nowMs());
  }

  function ripen(): void {
    timerAtMs = Number.POSITIVE_INFINITY;
    const nowMs = clock.nowMs();
    for (let key = heap.take(nowMs); key !== undefined; key = heap.take(nowMs)) onReady(key);
    arm();
  }

  return {
    /** Adds a key. If the key is already waiting, the earlier of the two times is used. */
    add(key: string, delayMs: number): void {
      heap.add(key, clock.nowMs() + delayMs);
      arm();
    },
    clear(): void {
      heap.clear();
      cancelTimer();
      timerAtMs = Number.POSITIVE_INFINITY;
    },
  };
}

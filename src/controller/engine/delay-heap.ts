import type { Clock } from '../../time/clock.ts';

/**
 * A binary heap that contains keys. Keys are sorted by the time at which they become ready. There is at most one live
 * entry per key.
 */
type DelayHeap = {
  /** Adds a key to the heap. For a key that is already waiting, the earlier time wins. */
  readonly add: (key: string, readyAtMs: number) => void;
  readonly nextMs: () => number | undefined;
  /** Removes and returns a key that is ready at `nowMs`, if there is one. */
  readonly take: (nowMs: number) => string | undefined;
  readonly size: () => number;
  readonly clear: () => void;
};

type Entry = { readonly key: string; readonly atMs: number };

export function createDelayHeap(): DelayHeap {
  const heap: Entry[] = [];
  // The time of the live entry for each key. When an entry is replaced by an earlier entry, it remains in the heap
  // until it reaches the top.
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

/** Calls `onReady` for each key after its delay. All keys share a single timer. */
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
    /** Adds a key to the heap. For a key that is already waiting, the earlier time wins. */
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

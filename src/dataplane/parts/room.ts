/** Number of further claims that this process can hold across all parts. Parts wait if no room is left. */
export interface Room {
  readonly free: () => number;
  readonly take: (claims: number) => void;
  readonly give: (claims: number) => void;
  /** Calls the function once as soon as room is available. */
  readonly wait: (onRoom: () => void) => void;
}

/** Creates the room. Pushed claims may exceed it, because a part only learns the limit from an exchange. */
export function createRoom(claims: number): Room {
  let free = claims;
  const waiting = new Set<() => void>();
  return {
    free: () => Math.max(0, free),
    take(count) {
      free -= count;
    },
    give(count) {
      free += count;
      if (free <= 0 || waiting.size === 0) return;
      const all = [...waiting];
      waiting.clear();
      for (const onRoom of all) onRoom();
    },
    wait: onRoom => void waiting.add(onRoom),
  };
}

/**
 * The number of additional claims that this process is able to hold, for all of its parts. Parts wait if no room is
 * left.
 */
export interface Room {
  readonly free: () => number;
  readonly take: (claims: number) => void;
  readonly give: (claims: number) => void;
  /** Calls the function a single time, as soon as there is enough room. */
  readonly wait: (onRoom: () => void) => void;
}

/**
 * Creates the room for the claims of a process. It is possible that claims which are pushed exceed it, because a part
 * will only know about the limit after an exchange.
 */
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

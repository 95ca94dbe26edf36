/** Occupancy counts the number of places used for each key, up to a limit. Unused keys are removed from memory. */
export interface Occupancy {
  /** Takes a place of the given key. Returns false if all places are in use. */
  readonly enter: (key: string) => boolean;
  /** Returns a place that was taken before. */
  readonly leave: (key: string) => void;
  /** Returns true if at least one place of the key is in use. */
  readonly isUsed: (key: string) => boolean;
}

/** @param most the number of places for each key. Defaults to no limit */
export function createOccupancy(most = Infinity): Occupancy {
  const used = new Map<string, number>();
  return {
    enter(key) {
      const count = used.get(key) ?? 0;
      if (count >= most) return false;
      used.set(key, count + 1);
      return true;
    },
    leave(key) {
      const left = (used.get(key) ?? 0) - 1;
      if (left > 0) used.set(key, left);
      else used.delete(key);
    },
    isUsed: key => used.has(key),
  };
}

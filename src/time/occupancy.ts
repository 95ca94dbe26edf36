/** Occupancy counts what each key has in use at the same time, up to a limit. Only keys in use are kept in memory. */
export interface Occupancy {
  /** Takes a place of the key, or returns false without taking one if all are in use. */
  readonly enter: (key: string) => boolean;
  /** Returns a place that was taken. */
  readonly leave: (key: string) => void;
}

/** @param most places of each key */
export function createOccupancy(most: number): Occupancy {
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
  };
}

import { createShares } from '../../time/shares.ts';

/** A part can take at most so many times as much as its workspace leaves free. */
const PART_RATIO = 8;

/**
 * The room of this process for claims, or for the bytes of bodies. All workspaces share it. A workspace can take at
 * most as much as it leaves free. Alone, it gets half of the room. If n workspaces want more than there is, each of
 * them gets 1 / (n + 1). The same amount is left for the next workspace. In the same way, the parts of a workspace
 * share its room. If there is only one busy part, it gets 4 / 9 of the room.
 */
export interface Room {
  /**
   * Returns the room that nobody holds, including reserved room. Negative if more was pushed than there is room for.
   */
  readonly free: () => number;
  /** Adds a part of a workspace. */
  readonly join: (tenant: string) => RoomShare;
}

/** The room that a part can take. */
export interface RoomShare {
  /** Returns the room that the part can take in addition. Negative if the part holds more than its share. */
  readonly free: () => number;
  /**
   * Returns the maximum that this part should hold. Nothing replaces what ends beyond its share, except for the last
   * claim. All parts of a workspace can use their limits at the same time, so the free room is divided between them. If
   * a part holds more than its portion, it can take the same amount again.
   *
   * @param held the room that it holds now
   * @param onRoom this is called as soon as there is room if there is none now
   */
  readonly limit: (held: number, onRoom: () => void) => number;
  /**
   * Reserves this amount for the next claims of the part, so that others can't be offered the same room in the
   * meantime. A part can have a single reservation, until it gives something.
   */
  readonly reserve: (count: number) => void;
  /** Takes from the reserved room first. */
  readonly take: (count: number) => void;
  /**
   * Also ends the reservation. This calls as many of the waiting functions as there is room for. An exchange that could
   * have claimed more excludes its own function because nothing is waiting to be claimed. For any other exchange, there
   * can be room for another claim if other parts have returned some in the meantime.
   */
  readonly give: (count: number, own?: () => void) => void;
  /** Calls the function a single time, as soon as there is room for `count`. Returns a function which stops waiting. */
  readonly wait: (onRoom: () => void, count: number) => () => void;
  /** Removes the part. The part must have given back everything before. */
  readonly leave: () => void;
}

interface Waiting {
  readonly share: RoomShare;
  /** The room that it needs. */
  readonly count: number;
}

/**
 * Creates a process's room. It is possible that claims which are pushed exceed it, because a part will only know
 * about the limit after an exchange.
 *
 * @param least a workspace that holds less than this can always take the difference
 */
export function createRoom(size: number, least = 0): Room {
  const shares = createShares(size);
  let allReserved = 0;
  const parts = new Map<string, number>();
  /** The waiting functions, by workspace. There may be 10,000 parts that wait, and a change concerns few of them. */
  const waiting = new Map<string, Map<() => void, Waiting>>();

  /** Returns the room that a part of the workspace can take if it holds `held`. */
  function freeFor(tenant: string, held: number): number {
    const ofPart = (PART_RATIO * shares.freeFor(tenant) - held) / (PART_RATIO + 1);
    return Math.max(least - shares.heldBy(tenant), Math.floor(ofPart));
  }

  /** Wakes those of a workspace for which it has room, after what others that were woken before them can take. */
  function wakeTenant(tenant: string, own: (() => void) | undefined): void {
    let offered = 0;
    for (const [onRoom, { share, count }] of waiting.get(tenant) ?? []) {
      if (freeFor(tenant, 0) <= offered) return;
      if (onRoom === own || share.free() < offered + count) continue;
      offered += count;
      stopWaiting(tenant, onRoom);
      onRoom();
    }
  }

  function stopWaiting(tenant: string, onRoom: () => void): void {
    const ofTenant = waiting.get(tenant);
    if (ofTenant?.delete(onRoom) && ofTenant.size === 0) waiting.delete(tenant);
  }

  /** @param giver the workspace that has given something */
  function wake(giver: string, own: (() => void) | undefined): void {
    wakeTenant(giver, own);
    for (const tenant of waiting.keys()) {
      // With so little left, only a workspace that holds less than `least` could take more. The parts of that workspace
      // wake it.
      if (PART_RATIO * shares.free() < 2 * (PART_RATIO + 1)) return;
      if (tenant !== giver) wakeTenant(tenant, own);
    }
  }

  return {
    free: () => shares.free() + allReserved,
    join(tenant) {
      parts.set(tenant, (parts.get(tenant) ?? 0) + 1);
      let held = 0;
      let reserved = 0;
      function setReserved(count: number): void {
        add(count - reserved);
        allReserved += count - reserved;
        reserved = count;
      }
      function add(count: number): void {
        held += count;
        shares.add(tenant, count);
      }
      const share: RoomShare = {
        free: () => freeFor(tenant, held),
        limit(holds, onRoom) {
          const most = share.free();
          if (most > 0) stopWaiting(tenant, onRoom);
          else share.wait(onRoom, 1);
          const offered = Math.min(most, Math.max(Math.ceil(most / (parts.get(tenant) ?? 1)), held, least));
          return Math.max(holds + offered, Math.min(1, holds));
        },
        reserve: setReserved,
        take(count) {
          add(count);
          setReserved(Math.max(0, reserved - count));
        },
        give(count, own) {
          add(-count);
          setReserved(0);
          if (waiting.size > 0) wake(tenant, own);
        },
        wait(onRoom, count) {
          const ofTenant = waiting.get(tenant) ?? new Map<() => void, Waiting>();
          waiting.set(tenant, ofTenant);
          ofTenant.set(onRoom, { share, count });
          return () => stopWaiting(tenant, onRoom);
        },
        leave() {
          for (const [onRoom, each] of waiting.get(tenant) ?? []) {
            if (each.share === share) stopWaiting(tenant, onRoom);
          }
          const left = (parts.get(tenant) ?? 1) - 1;
          if (left === 0) parts.delete(tenant);
          else parts.set(tenant, left);
        },
      };
      return share;
    },
  };
}

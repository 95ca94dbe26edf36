import { setTimeout as delay } from 'node:timers/promises';
import type { Part } from '../../part/keys.ts';
import { parseListedPart, readGeneration, readParts } from '../../part/members/listed-parts.ts';
import type { Members } from '../../part/members/members.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { PushConnection } from '../../redis/connection/push-connection.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import type { Logger } from '../../telemetry/log.ts';
import { every } from '../../time/clock.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import { type Duty, dutyOf } from './assignment.ts';

const BEAT_MS = 1_000;
/** The interval at which the list of parts is read. Needed in case all messages about a change have been lost. */
const READ_MS = 60_000;

/**
 * The number of parts to start or stop until Redis has replied. With a larger number, all other commands would have to
 * wait for them.
 */
export const STARTS_AT_ONCE = 16;

/** The longest time to wait for Redis. In a Cluster, only one of the nodes may be slow. In milliseconds. */
const CAUGHT_UP_MS = 250;

/** Resolves when Redis has replied to the commands so far. Does not wait if Redis is not responding. */
export async function caughtUp(redis: Pick<RedisClient, 'call'>): Promise<void> {
  const ended = new AbortController();
  const { signal } = ended;
  const replying = redis.call('hexists', CLUSTER_KEYS.parts, '');
  await Promise.race([replying, delay(CAUGHT_UP_MS, undefined, { signal })].map(each => each.catch(() => {})));
  ended.abort();
}

/** Something that works on a part. */
export interface PartWork {
  /** Sets if this dispatcher is the home from now on. */
  readonly setHome: (isHome: boolean) => void;
  readonly stop: () => Promise<void>;
}

export interface PartDispatcherDeps {
  readonly redis: Pick<RedisClient, 'call'>;
  readonly pushes: Pick<PushConnection, 'listen' | 'leave'>;
  readonly members: Members;
  /** The name of this process in the list of members. */
  readonly name: string;
  readonly startPart: (part: Part) => PartWork;
  /** A part of this dispatcher was removed from the list, but we did not receive a message. */
  readonly onUnlisted: (part: Part) => void;
  /** Stops all of this process's claims. */
  readonly isHeld: () => boolean;
  readonly log: Logger;
}

export interface PartDispatcher {
  readonly start: () => void;
  /** You should call this if messages may have been lost, or if `isHeld` has changed. */
  readonly refresh: () => void;
  /** Completes all attempts that are in progress, and returns all other claims. */
  readonly stop: () => Promise<void>;
}

interface Entry {
  readonly gen: string;
  duty: Duty;
  readonly work: PartWork;
  /** Set while it stops. */
  stopping: Promise<void> | undefined;
}

/**
 * Works on the parts assigned to this dispatcher. If it is not possible to read the list of parts or dispatchers, it
 * keeps its current parts.
 */
export function createPartDispatcher(deps: PartDispatcherDeps): PartDispatcher {
  const { redis, members, name, log } = deps;
  const working = new Map<string, Entry>();
  let parts = new Map<string, string>();
  let names: readonly string[] = [name];
  let isStopping = false;
  let isRefreshing = false;
  let refreshWanted = false;
  let isSettling = false;
  let settleWanted = false;
  let beatSoon = () => {};

  /** Returns true if this has started or stopped any work. */
  function settle(partName: string): boolean {
    try {
      return changeWork(partName);
    } catch (error) {
      // Don't retry here because the other parts must not wait. The dispatcher tries again when it reads the list the
      // next time.
      log.error({ err: error, part: partName }, 'failed to start the work on a part');
      return false;
    }
  }

  function changeWork(partName: string): boolean {
    const gen = parts.get(partName);
    const duty = isStopping || deps.isHeld() || gen === undefined ? 'none' : dutyOf(name, names, partName);
    const entry = working.get(partName);
    if (entry === undefined) {
      if (gen === undefined || duty === 'none') return false;
      const work = deps.startPart(parseListedPart(partName, gen));
      work.setHome(duty === 'home');
      working.set(partName, { gen, duty, work, stopping: undefined });
      return true;
    }
    if (entry.stopping !== undefined) return false;
    if (entry.gen === gen && duty !== 'none') {
      const changes = entry.duty !== duty;
      if (changes) entry.work.setHome(duty === 'home');
      entry.duty = duty;
      return changes;
    }
    // The connection to the part is needed until it has been stopped. If there are new parts for this dispatcher after
    // that, they will be found then.
    entry.stopping = entry.work
      .stop()
      .catch(error => log.error({ err: error as Error, part: partName }, 'failed to leave a part'))
      .then(() => {
        working.delete(partName);
        settle(partName);
      });
    return true;
  }

  /** Settles parts until it has started or stopped work on `most` of them. Returns whether there are no more. */
  function* settleSome(names: Iterator<string>, most: number): Steps<boolean> {
    for (let changed = 0; changed < most; ) {
      const { done, value } = names.next();
      if (done) return true;
      if (settle(value)) changed++;
      yield;
    }
    return false;
  }

  const all = () => new Set([...working.keys(), ...parts.keys()]).values();

  /**
   * Settles all parts in slices. There may be 10,000 of them, and each start or stop causes several commands. If
   * this is requested while it is running, it runs again.
   */
  function settleAll(): void {
    settleWanted = true;
    if (isSettling) return;
    isSettling = true;
    void (async () => {
      try {
        while (settleWanted) {
          settleWanted = false;
          const names = all();
          while (!(await inSlices(settleSome(names, STARTS_AT_ONCE)))) await caughtUp(redis);
        }
      } catch (error) {
        log.error({ err: error }, 'failed to change the work on the parts');
      } finally {
        // There is no turn between the last check and this, so no request is lost.
        isSettling = false;
      }
    })();
  }

  function noteMembers(now: readonly string[]): void {
    const next = now.includes(name) ? now : [...now, name];
    if (next.length === names.length && next.every((each, i) => each === names[i])) return;
    names = next;
    settleAll();
  }

  /** Reads the list of all parts. If this is requested while it is being read, it will be read again. */
  function refresh(): void {
    refreshWanted = true;
    if (isRefreshing || isStopping) return;
    isRefreshing = true;
    void (async () => {
      while (refreshWanted && !isStopping) {
        refreshWanted = false;
        try {
          const listed = await readParts(redis);
          for (const [partName, { gen, stopping }] of working) {
            if (stopping === undefined && parts.has(partName) && !listed.has(partName)) {
              deps.onUnlisted(parseListedPart(partName, gen));
            }
          }
          parts = listed;
          settleAll();
        } catch (error) {
          log.debug({ err: error as Error }, 'failed to read the list of parts');
          refreshWanted = true;
          await delay(BEAT_MS);
        }
      }
      isRefreshing = false;
    })();
  }

  async function noteChange(partName: string): Promise<void> {
    const gen = await readGeneration(redis, partName);
    // The list that is being read may be older.
    if (isRefreshing) refreshWanted = true;
    if (gen === undefined) parts.delete(partName);
    else parts.set(partName, gen);
    settle(partName);
  }

  async function beat(): Promise<void> {
    while (!isStopping) {
      try {
        // If this dispatcher was held back, the others would not be able to get its parts.
        noteMembers(await (deps.isHeld() ? members.leave() : members.beat()));
      } catch (error) {
        log.debug({ err: error as Error }, 'heartbeat failed');
      }
      await new Promise<void>(resolve => {
        const timer = setTimeout(resolve, BEAT_MS);
        beatSoon = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  const stopRefreshing = every(refresh, READ_MS);
  let beating: Promise<void> | undefined;

  return {
    start() {
      beating = beat();
      deps.pushes.listen(CLUSTER_KEYS.partsChanged, {
        onListening: refresh,
        onMessage(message) {
          if (message.length === 0) beatSoon();
          else noteChange(message.toString()).catch(refresh);
        },
      });
    },
    refresh,
    async stop() {
      isStopping = true;
      stopRefreshing();
      deps.pushes.leave(CLUSTER_KEYS.partsChanged);
      beatSoon();
      // The parts must not wait for the list of dispatchers, because its Redis may not respond.
      await inSlices(settleSome(all(), Number.POSITIVE_INFINITY));
      await beating;
      await members.leave().catch(() => {});
      await Promise.all([...working.values()].flatMap(({ stopping }) => stopping ?? []));
    },
  };
}

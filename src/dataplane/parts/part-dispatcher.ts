import { setTimeout as delay } from 'node:timers/promises';
import type { Part } from '../../part/keys.ts';
import { parseListedPart, readGeneration, readParts } from '../../part/members/listed-parts.ts';
import type { Members } from '../../part/members/members.ts';
import type { RedisClient } from '../../redis/client.ts';
import type { PushConnection } from '../../redis/connection/push-connection.ts';
import { CLUSTER_KEYS } from '../../redis/keys.ts';
import type { Logger } from '../../telemetry/log.ts';
import { type Duty, dutyOf } from './assignment.ts';

const BEAT_MS = 1_000;
/** How often we read the list of parts. This is needed in case all messages about a change have been lost. */
const READ_MS = 60_000;

/** Something that works on a part. */
export interface PartWork {
  /** Sets whether this dispatcher is the home from now on. */
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
  let beatSoon = () => {};

  function settle(partName: string): void {
    const gen = parts.get(partName);
    const duty = isStopping || deps.isHeld() || gen === undefined ? 'none' : dutyOf(name, names, partName);
    const entry = working.get(partName);
    if (entry === undefined) {
      if (gen === undefined || duty === 'none') return;
      const work = deps.startPart(parseListedPart(partName, gen));
      work.setHome(duty === 'home');
      working.set(partName, { gen, duty, work, stopping: undefined });
      return;
    }
    if (entry.stopping !== undefined) return;
    if (entry.gen === gen && duty !== 'none') {
      if (entry.duty !== duty) entry.work.setHome(duty === 'home');
      entry.duty = duty;
      return;
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
  }

  function settleAll(): void {
    for (const partName of new Set([...working.keys(), ...parts.keys()])) settle(partName);
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

  const refreshTimer = setInterval(refresh, READ_MS);
  refreshTimer.unref();
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
      clearInterval(refreshTimer);
      deps.pushes.leave(CLUSTER_KEYS.partsChanged);
      beatSoon();
      // The parts must not wait for the list of dispatchers, because its Redis may not respond.
      settleAll();
      await beating;
      await members.leave().catch(() => {});
      await Promise.all([...working.values()].flatMap(({ stopping }) => stopping ?? []));
    },
  };
}

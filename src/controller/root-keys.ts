import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { ControlStore } from '../record/control-store.ts';
import type { Logger } from '../telemetry/log.ts';
import { type Clock, sleep } from '../time/clock.ts';

const CHECK_EVERY_MS = 1_000;

/** Chooses the root key that signs and encrypts what is new. Only the leader does. */
export interface RootKeyChoice {
  /**
   * Starts a new term, ending when `over` is aborted.
   *
   * @param state of the keys before the routes were applied
   */
  readonly begin: (over: AbortSignal, state: object) => void;
  /** Checks now. */
  readonly check: () => Promise<void>;
  /** Returns how many replicas the newest root key is waiting for. 0 once it is in use. */
  readonly waitingFor: () => number;
}

/**
 * Returns the newest root key that every replica has. Replicas see a new file at different times, and one without the
 * key could neither decrypt nor sign. Undefined if there is none newer than the first one.
 */
export function chooseRootKey(
  keys: Pick<KeyRing, 'all' | 'first'>,
  reports: ReadonlyMap<string, readonly string[]>,
): { readonly fingerprint: string; readonly name: string } | undefined {
  const all = keys.all();
  const newer = all.slice(all.indexOf(keys.first()) + 1);
  return newer.findLast(({ id }) => [...reports.values()].every(ids => ids.includes(id)));
}

export function createRootKeyChoice(deps: {
  readonly keys: KeyRing;
  readonly readRootKeyReports: () => Promise<ReadonlyMap<string, readonly string[]>>;
  readonly control: Pick<ControlStore, 'publishRootKey'>;
  readonly fence: () => number;
  /** Enqueues all tenants, whose endpoints are encrypted with the first key. */
  readonly enqueueAll: () => void;
  readonly clock: Pick<Clock, 'setTimer'>;
  readonly log: Pick<Logger, 'info' | 'warn'>;
}): RootKeyChoice {
  const { keys, control, log } = deps;
  let applied = keys.state();
  let waiting: readonly string[] = [];

  async function promote(): Promise<void> {
    const newest = keys.newest();
    if (keys.first() === newest) {
      waiting = [];
      return;
    }
    const reports = await deps.readRootKeyReports();
    const lacking = [...reports].filter(([, ids]) => !ids.includes(newest.id)).map(([name]) => name);
    if (lacking.length > 0 && lacking.join() !== waiting.join()) {
      log.info({ key: newest.name, replicas: lacking }, 'a new root key is used once these replicas have it');
    }
    waiting = lacking;
    const next = chooseRootKey(keys, reports);
    if (next === undefined) return;
    // The other roles must know first: what is encrypted with the key must not surprise them.
    await control.publishRootKey(deps.fence(), next.fingerprint);
    keys.follow(next.fingerprint);
    log.info({ key: next.name }, 'a new root key signs and encrypts from now on');
  }

  async function check(): Promise<void> {
    await promote();
    if (keys.state() === applied) return;
    const state = keys.state();
    // The first key may have been removed, in which case another one has taken its place.
    await control.publishRootKey(deps.fence(), keys.first().fingerprint);
    applied = state;
    deps.enqueueAll();
  }

  async function run(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await check().catch(error => log.warn({ err: error }, 'the root keys could not be checked, retrying'));
      await sleep(deps.clock, CHECK_EVERY_MS, over);
    }
    waiting = [];
  }

  return {
    begin(over, state) {
      applied = state;
      void run(over);
    },
    check,
    waitingFor: () => waiting.length,
  };
}

import type { KeyRing } from '../core/delivery/key-ring.ts';
import type { ControlStore } from '../record/control-store.ts';
import { createLimitedLog } from '../telemetry/limited-log.ts';
import type { Logger } from '../telemetry/log.ts';
import { type Clock, sleep } from '../time/clock.ts';

const CHECK_EVERY_MS = 1_000;
/** The time within which every replica reports its keys. Reports are sent every 30 seconds. */
const ALL_REPORT_WITHIN_MS = 35_000;

/** The keys are checked every second, so a Redis outage would cause thousands of lines. */
const FAILURE_LINES = { lines: 1, periodMs: 60_000 };

/** Chooses the root key for signing and encrypting new values. Only the leader does this. */
export interface RootKeyChoice {
  /**
   * Starts a new term, ending when `over` is aborted.
   *
   * @param state of the keys before the routes were applied
   */
  readonly begin: (over: AbortSignal, state: object) => void;
  /** Checks now. */
  readonly check: () => Promise<void>;
  /** Returns the number of replicas that have not loaded the newest root key, or 0 if it is already in use. */
  readonly waitingFor: () => number;
}

/**
 * Returns the newest root key that has been loaded by every replica. Replicas detect a new file at different times.
 * Until a replica has the key, it could not decrypt or sign. Undefined if there is no key newer than the first one.
 *
 * @param self name of this replica. If its own report is missing, the reports of other replicas may be missing as well
 */
export function chooseRootKey(
  keys: Pick<KeyRing, 'all' | 'first'>,
  reports: ReadonlyMap<string, readonly string[]>,
  self: string,
): { readonly fingerprint: string; readonly name: string } | undefined {
  const all = keys.all();
  const newer = all.slice(all.indexOf(keys.first()) + 1);
  if (!reports.has(self)) return undefined;
  return newer.findLast(({ id }) => [...reports.values()].every(ids => ids.includes(id)));
}

export function createRootKeyChoice(deps: {
  readonly keys: KeyRing;
  /** Name that this replica reports its keys with. */
  readonly replica: string;
  readonly readRootKeyReports: () => Promise<ReadonlyMap<string, readonly string[]>>;
  readonly control: Pick<ControlStore, 'publishRootKey'>;
  readonly fence: () => number;
  /**
   * Enqueues all tenants, whose endpoints are encrypted with the first key, and all invitations that are not sent yet.
   */
  readonly enqueueAll: () => void;
  readonly clock: Pick<Clock, 'setTimer' | 'nowMs'>;
  readonly log: Pick<Logger, 'info' | 'debug' | 'warn' | 'error'>;
}): RootKeyChoice {
  const { keys, replica, clock, control, log } = deps;
  const logFailure = createLimitedLog({ ...FAILURE_LINES, nowMs: clock.nowMs });
  let applied = keys.state();
  let waiting: readonly string[] = [];
  /** Since when replicas have been able to report to this leader. */
  let sinceMs = Number.POSITIVE_INFINITY;

  async function promote(): Promise<void> {
    const newest = keys.newest();
    if (keys.first() === newest) {
      waiting = [];
      return;
    }
    const reports = await deps.readRootKeyReports();
    // All reports may have been lost, including the report of this replica.
    if (!reports.has(replica)) sinceMs = clock.nowMs();
    const names = new Set([...reports.keys(), replica]);
    const lacking = [...names].filter(name => reports.get(name)?.includes(newest.id) !== true);
    if (lacking.length > 0 && lacking.join() !== waiting.join()) {
      log.info(
        { key: newest.name, replicas: lacking },
        'the new root key will be used after these replicas have loaded it',
      );
    }
    waiting = lacking;
    const next = chooseRootKey(keys, reports, replica);
    if (next === undefined || clock.nowMs() < sinceMs + ALL_REPORT_WITHIN_MS) return;
    // Publish the key first so that other roles can decrypt values as soon as they are encrypted with it.
    await control.publishRootKey(deps.fence(), next.fingerprint);
    keys.follow(next.fingerprint);
    log.info({ key: next.name }, 'a new root key signs and encrypts from now on');
  }

  async function check(): Promise<void> {
    await promote();
    if (keys.state() === applied) return;
    const state = keys.state();
    // The first key may have been removed and replaced with a different key.
    await control.publishRootKey(deps.fence(), keys.first().fingerprint);
    applied = state;
    deps.enqueueAll();
  }

  async function run(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      await check().catch((err: unknown) =>
        logFailure(log, 'warn', { err }, 'the root keys could not be checked, retrying'),
      );
      await sleep(clock, CHECK_EVERY_MS, over);
    }
    waiting = [];
  }

  return {
    begin(over, state) {
      applied = state;
      sinceMs = clock.nowMs();
      void run(over);
    },
    check,
    waitingFor: () => waiting.length,
  };
}

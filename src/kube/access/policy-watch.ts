import type { Logger } from '../../telemetry/log.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import type { KubeClient } from '../client.ts';
import { KubeError } from '../kube-error.ts';
import type { ObjectName } from '../object.ts';
import type { Resource } from '../resource.ts';
import { isServiceAccount, readOwnUser } from './own-user.ts';

/**
 * A write that RBAC allows for this role, but that one of the admission policies should deny. The write is only sent as
 * a dry run.
 */
export interface PolicyProbe {
  readonly resource: Resource;
  readonly name: ObjectName;
  readonly body: object;
}

/** The delay after a dry run that was accepted or has failed, and after a dry run that was denied, in milliseconds. */
const SOON_MS = 60_000;
const LATER_MS = 600_000;

/** PolicyWatch checks whether the shipped admission policies apply to this role's service account. */
export interface PolicyWatch {
  /**
   * Checks the policies until `stop` is aborted. Repeats the check every 10 minutes, or every minute if the policies
   * are missing.
   */
  readonly run: (stop: AbortSignal) => Promise<void>;
}

/**
 * Creates a watch that sends `probe` as a dry run. If the policies refer to a different service account, for example in
 * another namespace, they have no effect. It is only possible to find this out by trying to write. Any other user is
 * not meant to be limited.
 */
export function createPolicyWatch(options: {
  readonly client: Pick<KubeClient, 'create' | 'apply'>;
  readonly probe: PolicyProbe;
  /** Called after each dry run. If the role does not use a service account, it will never be called. */
  readonly onResult: (missing: boolean) => void;
  readonly clock: Clock;
  readonly log: Logger;
}): PolicyWatch {
  const { client, probe, onResult, clock, log } = options;

  /** Undefined if the user is not a service account. */
  async function isAccepted(signal: AbortSignal): Promise<boolean | undefined> {
    const user = await readOwnUser(client, signal);
    if (!isServiceAccount(user)) return undefined;
    try {
      await client.apply(probe.resource, probe.name, probe.body, { fieldManager: 'sluice', dryRun: true, signal });
    } catch (error) {
      if (error instanceof KubeError && error.detail.includes('ValidatingAdmissionPolicy')) return false;
      throw error;
    }
    log.warn(
      { user },
      'the admission policies do not apply to this service account, so it can write more than it needs; apply the policies of config/rbac with the namespace and name of the service account',
    );
    return true;
  }

  return {
    run: async stop => {
      while (!stop.aborted) {
        let pauseMs = SOON_MS;
        try {
          const missing = await isAccepted(stop);
          if (missing !== undefined) onResult(missing);
          if (missing !== true) pauseMs = LATER_MS;
        } catch (error) {
          log.debug({ err: error as Error }, 'failed to check the admission policies, retrying');
        }
        await sleep(clock, pauseMs, stop);
      }
    },
  };
}

import { createLimitedLog } from '../../telemetry/limited-log.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Impairment } from '../../telemetry/role-health.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { readKeySet } from './issuer-documents.ts';
import { createIssuerKeys, type IssuerKeys } from './issuer-keys.ts';
import { AUTHENTICATION_LIMITS, type AuthenticationLimits } from './limits.ts';

/** While an issuer is unavailable, its keys are requested once a second. */
const FAILURE_LINES = { lines: 1, periodMs: 60_000 };

/** The interval at which the keys of an unavailable issuer are read while there are no calls, in milliseconds. */
const WATCH_EVERY_MS = 5_000;

/** Creates the keys of all `issuers`, which are read when they are needed. */
export function createIssuers(options: {
  readonly issuers: readonly string[];
  readonly limits?: Partial<AuthenticationLimits>;
  /** Monotonic clock in milliseconds. */
  readonly nowMs: () => number;
  readonly log: Logger;
}) {
  const { nowMs, log } = options;
  const limits = { ...AUTHENTICATION_LIMITS, ...options.limits };
  const create = (issuer: string) => {
    const warn = createLimitedLog({ ...FAILURE_LINES, nowMs });
    return createIssuerKeys({
      read: () => readKeySet(issuer, limits),
      limits,
      nowMs,
      onFailure: error => warn(log, 'warn', { issuer, err: error }, 'failed to read the keys of the issuer'),
    });
  };
  const all = new Map(options.issuers.map(issuer => [issuer, create(issuer)]));
  return {
    /** Returns the keys of the given issuer. Undefined if it is not one of `issuers`. */
    keysOf: (issuer: string): IssuerKeys | undefined => all.get(issuer),

    /** Reads the keys of all issuers, and those of unavailable issuers again, until `stop` is aborted. */
    watch: async (clock: Pick<Clock, 'setTimer'>, stop: AbortSignal): Promise<void> => {
      while (!stop.aborted) {
        await Promise.all([...all.values()].map(({ retry }) => retry()));
        await sleep(clock, WATCH_EVERY_MS, stop);
      }
    },

    /** Returns the impairment of a facade that cannot verify the tokens of at least one issuer. */
    impairments: (isAlone: boolean): readonly Impairment[] => {
      const outages = [...all].flatMap(([issuer, keys]) => {
        const outage = keys.outage();
        return outage === undefined ? [] : [`${issuer}: ${describeOutage(outage)}`];
      });
      if (outages.length === 0) return [];
      const message = `The keys of the identity provider cannot be read (${outages.join('; ')}), so calls with its access tokens are rejected with 503. Check SLUICE_OIDC_ISSUERS and the connection to the identity provider.`;
      const isWhole = isAlone && outages.length === all.size;
      return [{ reason: 'IssuerUnavailable', cause: isWhole ? 'dependency' : 'partial', message }];
    },
  };
}

export type Issuers = ReturnType<typeof createIssuers>;

function describeOutage(outage: unknown): string {
  if (!(outage instanceof Error)) return 'not read yet';
  // The reason why `fetch` has failed is in the cause.
  return outage.cause instanceof Error && outage.cause.message !== '' ? outage.cause.message : outage.message;
}

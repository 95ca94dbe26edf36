import { z } from 'zod';

const count = (min: number, max: number, description: string) =>
  z
    .int()
    .min(min)
    .max(max)
    .meta({ format: max > 2_147_483_647 ? 'int64' : 'int32' })
    .describe(`${description} ${min === 0 ? `At most ${max}.` : `Between ${min} and ${max}.`}`)
    .optional();

/** An Account's limits, by name. Each limit is shared by all workspaces of the account. */
export const AccountLimits = z
  .object({
    storedBytes: count(
      0,
      Number.MAX_SAFE_INTEGER,
      'The maximum number of bytes that the events of all streams can use together, calculated as for the quota of a stream. Beyond this limit, ingress rejects events with 429.',
    ),
    eventsPerSecond: count(
      0,
      1_000_000,
      'The maximum number of events per second that each ingress replica accepts. An event counts once for every 16 KiB of its body (rounded up). Sandbox requests count separately. Beyond this limit, ingress rejects events with 429.',
    ),
    streams: count(0, 100_000, 'The maximum number of CatalogStreams.'),
    packages: count(0, 100_000, 'The maximum number of Packages, including archived packages.'),
    integrations: count(0, 1_000_000, 'The maximum number of Integrations, including direct grants.'),
    activations: count(
      0,
      10_000_000,
      'The maximum number of Activations that are not revoked. Including revoked Activations, which are removed after 30 days, an account can have twice as many.',
    ),
    subscriptions: count(
      0,
      1_000_000,
      "The maximum number of Subscriptions in the account's own workspaces, i.e. the partner's workspaces.",
    ),
    blocks: count(
      0,
      10_000_000,
      'The maximum number of Blocks. Blocks on a package also count. They are never rejected because a producer must always be able to close a route.',
    ),
    requestsPerMinute: count(
      10,
      10_000_000,
      'The number of points per minute that all callers of the REST API together can use on each facade replica. A burst can use the points of 10 s, or 1000 points if the limit is lower than 6000. Most calls cost 1 point.',
    ),
    invitationMailsPerDay: count(0, 1_000_000, 'The maximum number of invitations sent by email within 24 hours.'),
  })
  .describe(
    'The limits for all workspaces of the account together. Defaults to the limits of the plan (SLUICE_FREE_LIMITS or SLUICE_METERED_LIMITS). No limit can exceed those of the installation (SLUICE_MAX_LIMITS).',
  );
export type AccountLimits = z.infer<typeof AccountLimits>;

export type LimitName = keyof AccountLimits;

/** The names of all limits, in the same order as in the kind. */
export const LIMIT_NAMES = Object.keys(AccountLimits.shape) as readonly LimitName[];

import { z } from 'zod';

const count = (min: number, max: number, description: string) =>
  z
    .int()
    .min(min)
    .max(max)
    .meta({ format: max > 2_147_483_647 ? 'int64' : 'int32' })
    .describe(`${description} ${min === 0 ? `At most ${max}.` : `Between ${min} and ${max}.`}`)
    .optional();

/** The limits of an Account, by name. Each limit is shared by all workspaces of the account. */
export const AccountLimits = z
  .object({
    storedBytes: count(
      0,
      Number.MAX_SAFE_INTEGER,
      'The maximum number of event bytes that all streams can store together. Event sizes are calculated in the same way as for the storage quota of a stream. When this limit has been reached, ingress rejects additional events with 429.',
    ),
    eventsPerSecond: count(
      0,
      1_000_000,
      'The maximum number of events per second that each replica of ingress accepts. An event is counted once for every 16 KiB of its body (rounded up). Sandbox requests are counted separately. When this limit has been reached, ingress rejects additional events with 429.',
    ),
    streams: count(0, 100_000, 'The maximum number of CatalogStreams.'),
    packages: count(0, 100_000, 'The maximum number of Packages, including archived packages.'),
    integrations: count(0, 1_000_000, 'The maximum number of Integrations, including direct grants.'),
    activations: count(
      0,
      10_000_000,
      'The maximum number of Activations, not including revoked Activations. Revoked Activations are removed after 30 days. When including revoked Activations, an account can have twice this number.',
    ),
    subscriptions: count(
      0,
      1_000_000,
      "The maximum number of Subscriptions in the account's own workspaces, i.e. the partner's workspaces.",
    ),
    blocks: count(
      0,
      10_000_000,
      'The maximum number of Blocks. Blocks on a package are counted, but they are accepted even if the limit has been reached because a producer must always be able to close a route.',
    ),
    requestsPerMinute: count(
      10,
      10_000_000,
      'The number of points per minute that all REST API callers together can use on each replica of the facade. They can use the points of 10 s in a single burst, or up to 1000 points if the limit is lower than 6000. Most calls cost 1 point, and the maximum is 10 points.',
    ),
    invitationMailsPerDay: count(0, 1_000_000, 'The maximum number of invitations sent by email within 24 hours.'),
  })
  .describe(
    "The limits for all workspaces of the account together. If a limit is omitted, the default of the plan is used (SLUICE_FREE_LIMITS or SLUICE_METERED_LIMITS). A limit can't exceed the limit of the installation (SLUICE_MAX_LIMITS).",
  );
export type AccountLimits = z.infer<typeof AccountLimits>;

export type LimitName = keyof AccountLimits;

/** The names of all limits, in the same order as in the kind. */
export const LIMIT_NAMES = Object.keys(AccountLimits.shape) as readonly LimitName[];

import { z } from 'zod';

const count = (min: number, max: number, description: string) =>
  z
    .int()
    .min(min)
    .max(max)
    .meta({ format: max > 2_147_483_647 ? 'int64' : 'int32' })
    .describe(`${description} ${min === 0 ? `At most ${max}.` : `Between ${min} and ${max}.`}`)
    .optional();

/** The limits of an Account, by name. Each limit is shared by all of the workspaces of the account. */
export const AccountLimits = z
  .object({
    storedBytes: count(
      0,
      Number.MAX_SAFE_INTEGER,
      'Bytes of events that all streams can store together. Sizes are calculated as for the storage quota of a stream. Ingress rejects any more with 429.',
    ),
    eventsPerSecond: count(
      0,
      1_000_000,
      'Events per second that each replica of ingress accepts. An event counts once for each started 16 KiB of its body. Sandbox requests are counted separately. Ingress rejects any more with 429.',
    ),
    streams: count(0, 100_000, 'Number of CatalogStreams.'),
    packages: count(0, 100_000, 'Number of Packages, including archived ones.'),
    integrations: count(0, 1_000_000, 'Number of Integrations, whether they were invited by email or are declared.'),
    activations: count(
      0,
      10_000_000,
      'Number of Activations that are not revoked. Revoked ones are removed after 30 days. An account can have twice as many Activations in all.',
    ),
    subscriptions: count(
      0,
      1_000_000,
      "Number of Subscriptions in the account's own workspaces, which are those of the partner.",
    ),
    blocks: count(
      0,
      10_000_000,
      'Number of Blocks. Blocks on a package are counted, but are accepted even if the limit has been reached, because a producer must always be able to close a route.',
    ),
    requestsPerMinute: count(
      10,
      10_000_000,
      'Points per minute that all callers of the REST API can use together on each replica of the facade. They can use the points of 10 s at once, or up to 1000 points if the limit is lower than 6000. Most calls cost 1 point, and no call costs more than 10.',
    ),
    invitationMailsPerDay: count(0, 1_000_000, 'Number of invitations that are sent by email in 24 hours.'),
  })
  .describe(
    'Limits for all workspaces of the account together. Limits that are omitted take the default of the plan (SLUICE_FREE_LIMITS or SLUICE_METERED_LIMITS). No limit exceeds that of the installation (SLUICE_MAX_LIMITS).',
  );
export type AccountLimits = z.infer<typeof AccountLimits>;

export type LimitName = keyof AccountLimits;

/** The names of all limits, in the same order as in the kind. */
export const LIMIT_NAMES = Object.keys(AccountLimits.shape) as readonly LimitName[];

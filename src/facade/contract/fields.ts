import { z } from 'zod';
import { ID_PREFIX, type IdKind } from '../../core/ids/ids.ts';

/** Readable names for the kinds of public ids. */
const CALLED: Record<IdKind, string> = {
  Workspace: 'workspace (tenant)',
  CatalogStream: 'catalog entry (stream)',
  Package: 'package',
  Integration: 'integration',
  Activation: 'activation',
  Block: 'block',
  Subscription: 'subscription',
  Account: 'account',
};

const EXAMPLE = '0123456789abcdefghjk';

/** Returns the schema for a public id. An id consists of a prefix and 20 characters in lowercase Crockford base32. */
export function publicIdField(kind: IdKind) {
  return z
    .string()
    .regex(
      new RegExp(`^${ID_PREFIX[kind]}[0-9a-hjkmnp-tv-z]{20}$`),
      `must be ${ID_PREFIX[kind]} followed by 20 characters`,
    )
    .meta({ description: `The public id of the ${CALLED[kind]}.`, example: `${ID_PREFIX[kind]}${EXAMPLE}` });
}

/** Returns the schema for the time of an event. */
export function timeField(description: string) {
  return z
    .string()
    .meta({ format: 'date-time', description: `${description} (RFC 3339, UTC).`, example: '2026-01-31T12:00:00.000Z' });
}

/** Path parameter schemas by name. */
export const PATH_PARAMETERS = {
  tenant: publicIdField('Workspace'),
  pkg: publicIdField('Package'),
  integration: publicIdField('Integration'),
  catalogEntryPublicId: publicIdField('CatalogStream'),
  activation: publicIdField('Activation'),
  block: publicIdField('Block'),
  subscription: publicIdField('Subscription'),
  account: publicIdField('Account'),
  event: z
    .string()
    .regex(
      /^evt_[0-9a-hjkmnp-tv-z]{35}$/,
      'must be evt_ followed by 35 characters. To find the id for a webhook-id, list the events with eventId',
    )
    .meta({
      description:
        "The id of an event in a subscription's inbox. To find this id, list the events. If you have the `webhook-id` of a delivery, set `eventId`.",
      example: `evt_01mxhs0q0000000${EXAMPLE}`,
    }),
  eventId: z
    .string()
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/, 'must be 1 to 256 characters of printable ASCII')
    .meta({
      description: 'The event id specified by the producer. Included in deliveries as webhook-id.',
      example: 'order-4711',
    }),
  replay: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'must be 1 to 64 letters, digits, _ and -')
    .meta({ description: 'The id of the replay.', example: 'rpl_0123456789abcdefghjk' }),
  key: z
    .string()
    .max(63)
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
      'must be letters and digits, with ".", "_" and "-" between them',
    )
    .meta({ description: 'The id of the ingress key.', example: 'key-1' }),
} as const;

export type PathParameter = keyof typeof PATH_PARAMETERS;

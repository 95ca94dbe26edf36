import { z } from 'zod';
import { ID_PREFIX, type IdKind } from '../../core/ids/ids.ts';

/** What each sort of public id is called for people. */
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

/** A public id: its prefix and 20 characters of lower-case Crockford base32. Whether it exists is another question. */
export function publicIdField(kind: IdKind) {
  return z
    .string()
    .regex(new RegExp(`^${ID_PREFIX[kind]}[0-9a-hjkmnp-tv-z]{20}$`), `has to be ${ID_PREFIX[kind]} and 20 characters`)
    .meta({ description: `Public id of the ${CALLED[kind]}.`, example: `${ID_PREFIX[kind]}${EXAMPLE}` });
}

/** The words of a path that are parameters, and what each has to look like. */
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
    .regex(/^evt_[0-9a-hjkmnp-tv-z]{35}$/, 'has to be evt_ and 35 characters')
    .meta({
      description: 'Id of the event in the inbox of one subscription, as the list of events names it.',
      example: `evt_01mxhs0q0000000${EXAMPLE}`,
    }),
  eventId: z
    .string()
    .regex(/^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/, 'has to be 1 to 256 characters of printable ASCII')
    .meta({ description: 'Id of the event as the producer gave it; its webhook-id.', example: 'order-4711' }),
  replay: z
    .string()
    .regex(/^[\w-]{1,64}$/, 'has to be 1 to 64 letters, digits, _ and -')
    .meta({ description: 'Id of the replay, as its answer names it.', example: 'rpl_0123456789abcdefghjk' }),
  key: z
    .string()
    .max(63)
    .regex(
      /^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$/,
      'has to be letters and digits, with ".", "_" and "-" between them',
    )
    .meta({ description: 'Id of the ingress key.', example: 'key-1' }),
} as const;

export type PathParameter = keyof typeof PATH_PARAMETERS;

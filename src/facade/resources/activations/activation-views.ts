import { z } from 'zod';
import { activationId, publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';
import { conditionFor } from '../../objects/wait.ts';

const ActivationState = z.enum(['Active', 'Revoked']).meta({
  description: 'The status of the activation. It is Revoked if any of its objects specify `revoked: true`.',
});

export const ActivatedKey = z
  .object({
    publicId: publicIdField('Activation'),
    groupKey: z.string().meta({ description: 'The group key.' }),
    status: ActivationState,
  })
  .meta({ id: 'ActivatedKey' });

export const ActivationEntry = ActivatedKey.extend({
  integrationPublicId: publicIdField('Integration'),
  effective: z
    .boolean()
    .meta({ description: 'Indicates whether events with this group key can be routed to the integration.' }),
  reason: z.string().meta({ description: 'The reason given by the Effective or Ready condition.' }),
  objects: z.array(z.string()).meta({
    description:
      'The names of the Activation objects for this activation. If any of these objects is revoked, the group key is closed.',
  }),
}).meta({ id: 'Activation' });

type ActivationObject = Pick<Cached<'Activation'>, 'metadata' | 'spec' | 'status'>;

/**
 * Returns the key of a pair within a workspace. The key is also used to sort the pairs. Names can't contain a slash, so
 * it can be used as a separator.
 */
export function pairOf({ spec }: ActivationObject): string {
  return `${spec.integration}/${spec.groupKey}`;
}

/**
 * Returns `Revoked` if at least one object of the pair is revoked, so a pair can always be closed.
 *
 * @param pair must contain at least one object
 */
export function pairStatus(pair: readonly ActivationObject[]): z.output<typeof ActivationState> {
  return pair.some(({ spec }) => spec.revoked === true) ? 'Revoked' : 'Active';
}

/** Returns the entry for a pair, based on all of its objects and their current conditions. */
export function activationEntry(
  pair: readonly [ActivationObject, ...ActivationObject[]],
): z.output<typeof ActivationEntry> {
  const decisive = pair.find(({ spec }) => spec.revoked === true) ?? pair[0];
  const { integration, groupKey } = decisive.spec;
  const { namespace = '' } = decisive.metadata;
  const conditions = decisive.status?.conditions ?? [];
  const effective = conditions.find(({ type }) => type === 'Effective');
  const ready = conditions.find(({ type }) => type === 'Ready');
  return {
    publicId: activationId(namespace, integration, groupKey),
    groupKey,
    status: pairStatus(pair),
    integrationPublicId: publicId('Integration', namespace, integration),
    effective: effective?.status === 'True',
    reason: (effective ?? ready)?.reason ?? 'Progressing',
    objects: pair.map(({ metadata }) => metadata.name).toSorted(),
  };
}

/** Controller result for an applied activation. */
type Judgement = 'open' | 'superseded' | 'revoked_elsewhere' | 'integration_closed' | 'unknown';

/**
 * Returns the controller's result, using the conditions.
 *
 * @param generation applied generation. Any older conditions are ignored
 */
export function judgeActivation(object: ActivationObject, generation: number): Judgement {
  if (object.spec.revoked === true) return 'superseded';
  switch (conditionFor(object, 'Effective', generation)?.reason) {
    // The gate is open, but events can't pass until the partner has accepted the invitation.
    case 'Routing':
    case 'IntegrationPending':
      return 'open';
    case 'RevokedElsewhere':
      return 'revoked_elsewhere';
    case 'IntegrationClosed':
      return 'integration_closed';
    default:
      return 'unknown';
  }
}

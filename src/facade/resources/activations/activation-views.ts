import { z } from 'zod';
import { activationId, publicId } from '../../../core/ids/ids.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Cached } from '../../objects/cached.ts';
import { conditionFor } from '../../objects/wait.ts';

const ActivationState = z
  .enum(['Active', 'Revoked'])
  .meta({ description: 'Revoked if at least one object of the pair has `revoked: true`.' });

export const ActivatedKey = z
  .object({
    publicId: publicIdField('Activation'),
    groupKey: z.string().meta({ description: 'The group key.' }),
    status: ActivationState,
  })
  .meta({ id: 'ActivatedKey' });

export const ActivationEntry = ActivatedKey.extend({
  integrationPublicId: publicIdField('Integration'),
  effective: z.boolean().meta({ description: 'Whether events of the group key may go to the integration.' }),
  reason: z.string().meta({ description: 'Reason of the condition Effective, or else of Ready.' }),
  objects: z
    .array(z.string())
    .meta({ description: 'Names of the Activation objects of this pair. One revoked object closes the pair.' }),
}).meta({ id: 'Activation' });

type ActivationObject = Pick<Cached<'Activation'>, 'metadata' | 'spec' | 'status'>;

/** Returns the identity of a pair within a workspace, which is also its sort key. Names contain no slash. */
export function pairOf({ spec }: ActivationObject): string {
  return `${spec.integration}/${spec.groupKey}`;
}

/** Returns `Revoked` if one object of the pair is revoked: closing always works. @param pair at least one */
export function pairStatus(pair: readonly ActivationObject[]): z.output<typeof ActivationState> {
  return pair.some(({ spec }) => spec.revoked === true) ? 'Revoked' : 'Active';
}

/** Returns the entry of one pair, from all its objects and the last conditions of the controller. */
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

/** The controller's result for an applied activation. */
type Judgement = 'open' | 'superseded' | 'revoked_elsewhere' | 'integration_closed' | 'unknown';

/** Reads the controller's result from the conditions. @param generation of the apply; older conditions do not count */
export function judgeActivation(object: ActivationObject, generation: number): Judgement {
  if (object.spec.revoked === true) return 'superseded';
  switch (conditionFor(object, 'Effective', generation)?.reason) {
    // Before the partner has accepted, the gate is open but nothing passes it.
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

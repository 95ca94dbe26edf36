import { z } from 'zod';
import { activationId, publicId } from '../../../core/ids/ids.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Cached } from '../../objects/cached.ts';
import { conditionFor } from '../../objects/wait.ts';

const ActivationState = z.enum(['Active', 'Revoked']).meta({
  description: 'The status of the activation. It is Revoked if at least one of its objects has `revoked: true`.',
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
  effective: z.boolean().meta({ description: 'Whether the integration can receive events of the group key.' }),
  reason: z.string().meta({ description: 'The reason of the condition Effective or Ready.' }),
  objects: z.array(z.string()).meta({
    description:
      'The names of the Activation objects of this activation. If one of them is revoked, the group key is closed.',
  }),
}).meta({ id: 'Activation' });

type ActivationObject = Pick<Cached<'Activation'>, 'metadata' | 'spec' | 'status'>;

/**
 * Returns the identity of an activation in a workspace, which is also used as its sort key. Names do not contain
 * slashes.
 */
export function pairOf({ spec }: ActivationObject): string {
  return `${spec.integration}/${spec.groupKey}`;
}

/**
 * Returns `Revoked` if one of the objects is revoked, because closing a group key takes precedence. @param pair a list
 * with at least one object
 */
export function pairStatus(pair: readonly ActivationObject[]): z.output<typeof ActivationState> {
  return pair.some(({ spec }) => spec.revoked === true) ? 'Revoked' : 'Active';
}

/** Returns the entry of an activation from its objects and the last conditions of the controller. */
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

/**
 * Reads the result of the controller from the conditions. @param generation the generation of the apply. Conditions of
 * earlier generations are ignored
 */
export function judgeActivation(object: ActivationObject, generation: number): Judgement {
  if (object.spec.revoked === true) return 'superseded';
  switch (conditionFor(object, 'Effective', generation)?.reason) {
    // Before the partner accepts the invitation, the gate is open but no events are routed.
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

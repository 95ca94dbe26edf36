import { z } from 'zod';
import { activationId, publicId } from '../../../core/ids/ids.ts';
import { publicIdField } from '../../contract/fields.ts';
import type { Cached } from '../../objects/cached.ts';
import { conditionFor } from '../../objects/wait.ts';

const ActivationState = z
  .enum(['Active', 'Revoked'])
  .meta({ description: 'Revoked as soon as one object of the pair says so.' });

export const ActivatedKey = z
  .object({
    publicId: publicIdField('Activation'),
    groupKey: z.string().meta({ description: 'The group key that is activated.' }),
    status: ActivationState,
  })
  .meta({ id: 'ActivatedKey' });

export const ActivationEntry = ActivatedKey.extend({
  integrationPublicId: publicIdField('Integration'),
  effective: z.boolean().meta({ description: 'Whether events of the group key may go to the integration.' }),
  reason: z.string().meta({ description: 'Why, in one word: a reason of the conditions Effective and Ready.' }),
  objects: z.array(z.string()).meta({ description: 'Activation objects of this pair. One that is revoked closes it.' }),
}).meta({ id: 'Activation' });

type ActivationObject = Pick<Cached<'Activation'>, 'metadata' | 'spec' | 'status'>;

/** Identity of a pair within a workspace, in the order of lists; names hold no slash. */
export function pairOf({ spec }: ActivationObject): string {
  return `${spec.integration}/${spec.groupKey}`;
}

/** `Revoked` as soon as one object of the pair says so: closing always works. @param pair at least one */
export function pairStatus(pair: readonly ActivationObject[]): z.output<typeof ActivationState> {
  return pair.some(({ spec }) => spec.revoked === true) ? 'Revoked' : 'Active';
}

/** One pair, as all of its objects say it; `effective` and its reason as the controller said it last. */
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

/** What the controller makes of an activation that was applied. */
export type Judgement = 'open' | 'superseded' | 'revoked_elsewhere' | 'integration_closed' | 'unknown';

/** @param generation of the apply: what was said of an earlier one says nothing */
export function judgeActivation(object: ActivationObject, generation: number): Judgement {
  if (object.spec.revoked === true) return 'superseded';
  switch (conditionFor(object, 'Effective', generation)?.reason) {
    // Before the partner has accepted, the gate is open, and nothing goes through it.
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

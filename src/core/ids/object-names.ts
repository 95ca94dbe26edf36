import { createHash } from 'node:crypto';
import { activationId, blockId, crockford, ID_PREFIX } from './ids.ts';

/** Name of the one Activation that the REST interface writes for a pair: what others call theirs is their own affair. */
export function activationObjectName(namespace: string, integration: string, groupKey: string): string {
  return activationObjectNameOf(activationId(namespace, integration, groupKey));
}

/** The same, by the pair's public id `act_…`. */
export function activationObjectNameOf(id: string): string {
  return `act-${id.slice(ID_PREFIX.Activation.length)}`;
}

/** Name of the one Block that the REST interface writes for an integration and a target. */
export function blockObjectName(namespace: string, integration: string, targetKind: string, target: string): string {
  return `blk-${blockId(namespace, integration, targetKind, target).slice(ID_PREFIX.Block.length)}`;
}

/** Name of the one Subscription that the REST interface writes for a stream that an integration receives. */
export function subscriptionObjectName(producer: string, integration: string, stream: string): string {
  const pair = `Subscription/${producer}/${integration}/${stream}`;
  return `sub-${crockford(createHash('sha256').update(pair, 'utf8').digest(), 20)}`;
}

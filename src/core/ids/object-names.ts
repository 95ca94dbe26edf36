import { createHash } from 'node:crypto';
import { activationId, blockId, crockford, ID_PREFIX } from './ids.ts';

/** Returns the name used by REST for the Activation of a pair. Other clients are free to choose any name. */
export function activationObjectName(namespace: string, integration: string, groupKey: string): string {
  return activationObjectNameOf(activationId(namespace, integration, groupKey));
}

/** Returns the same name for the public id of the pair (`act_…`). */
export function activationObjectNameOf(id: string): string {
  return `act-${id.slice(ID_PREFIX.Activation.length)}`;
}

/** Returns the name used by REST for the Block of an integration and a target. */
export function blockObjectName(namespace: string, integration: string, targetKind: string, target: string): string {
  return `blk-${blockId(namespace, integration, targetKind, target).slice(ID_PREFIX.Block.length)}`;
}

/** Returns the name used by REST for the Subscription of an integration to a stream. */
export function subscriptionObjectName(producer: string, integration: string, stream: string): string {
  const pair = `Subscription/${producer}/${integration}/${stream}`;
  return `sub-${crockford(createHash('sha256').update(pair, 'utf8').digest(), 20)}`;
}

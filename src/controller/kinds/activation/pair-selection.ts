import type { Selection } from '../../../kube/client.ts';
import type { Pair } from './pair.ts';

/** Escapes the three characters which have a special meaning in a field selector. */
function escapeSelector(value: string): string {
  return value.replaceAll(/[\\,=]/g, '\\$&');
}

/** Returns a selection for listing the Activations of a pair. */
export function pairSelection({ namespace, integration, groupKey }: Pair): Selection {
  const fieldSelector = `spec.integration=${escapeSelector(integration)},spec.groupKey=${escapeSelector(groupKey)}`;
  return { namespace, fieldSelector };
}

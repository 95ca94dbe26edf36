import type { Selection } from '../../../kube/client.ts';
import type { Pair } from './reconcile.ts';

/** In a field selector these three are said with a backslash. */
function escapeSelector(value: string): string {
  return value.replaceAll(/[\\,=]/g, '\\$&');
}

/** The Activations of one pair, as the API server is asked for them. */
export function pairSelection({ namespace, integration, groupKey }: Pair): Selection {
  const fieldSelector = `spec.integration=${escapeSelector(integration)},spec.groupKey=${escapeSelector(groupKey)}`;
  return { namespace, fieldSelector };
}

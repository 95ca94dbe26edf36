import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, kubeRefusal } from './kube-failures.ts';

/** Uses the API server to list all objects of a kind in a namespace. @throws Refusal 503 */
export type ListLive = <K extends KindName>(kind: K, namespace: string) => Promise<readonly Cached<K>[]>;

interface LiveListOptions {
  readonly client: Pick<KubeClient, 'list'>;
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
}

/**
 * Creates lists that can be used if a decision must not depend on the caches. A call never uses a list that was started
 * earlier. If a list is already running, all calls that arrive in the meantime share the next one. This means that
 * there's at most one list running per kind and namespace.
 */
export function createLiveLists({ client, keep }: LiveListOptions): ListLive {
  const flight = createSingleFlight<readonly object[]>();

  async function list(kind: KindName, namespace: string): Promise<readonly object[]> {
    try {
      const options = { namespace, signal: AbortSignal.timeout(CALL_WITHIN_MS) };
      return (await client.list<Cached<KindName>, object>(RESOURCES[kind], keep, options)).items;
    } catch (cause) {
      throw kubeRefusal(cause);
    }
  }

  return async <K extends KindName>(kind: K, namespace: string) =>
    (await flight(`${kind}/${namespace}`, () => list(kind, namespace))) as readonly Cached<K>[];
}

import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type Cached, RESOURCES } from './cached.ts';
import { CALL_WITHIN_MS, refusalOf } from './kube-failures.ts';

/** Lists all objects of a kind in a namespace from the API server. @throws Refusal 503 */
export type ListLive = <K extends KindName>(kind: K, namespace: string) => Promise<readonly Cached<K>[]>;

interface LiveListOptions {
  readonly client: Pick<KubeClient, 'list'>;
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
}

type Answer = Promise<readonly object[]>;

/**
 * Serves decisions that must not rely on caches. Each call gets a list that began after the call. Calls during a
 * running list share the next one, so at most one list per kind and namespace is running.
 */
export function createLiveLists({ client, keep }: LiveListOptions): ListLive {
  const underWay = new Map<string, { readonly ended: Promise<void>; next?: Answer }>();

  async function list(kind: KindName, namespace: string): Answer {
    try {
      const options = { namespace, signal: AbortSignal.timeout(CALL_WITHIN_MS) };
      return (await client.list<Cached<KindName>, object>(RESOURCES[kind], keep, options)).items;
    } catch (cause) {
      throw refusalOf(cause);
    }
  }

  function begin(key: string, kind: KindName, namespace: string): Answer {
    const answer = list(kind, namespace);
    const entry: { ended: Promise<void>; next?: Answer } = {
      ended: answer
        .then(
          () => undefined,
          () => undefined,
        )
        .finally(() => {
          if (entry.next === undefined) underWay.delete(key);
        }),
    };
    underWay.set(key, entry);
    return answer;
  }

  return async <K extends KindName>(kind: K, namespace: string) => {
    const key = `${kind}/${namespace}`;
    const current = underWay.get(key);
    if (current === undefined) return (await begin(key, kind, namespace)) as readonly Cached<K>[];
    current.next ??= current.ended.then(() => begin(key, kind, namespace));
    return (await current.next) as readonly Cached<K>[];
  };
}

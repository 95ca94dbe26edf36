import type { KindName } from '../../api/kinds/kinds.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { resourceOf } from '../../kube/resource.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { Cached } from './cached.ts';
import { callLimits, kubeRefusal } from './kube-failures.ts';

/** Fields that the API server can use to select objects. Only needs an entry for kinds with many objects. */
type Selectable = { readonly Block: 'spec.integration' | 'spec.target.kind' | 'spec.target.name' };

/** Selects the objects whose fields have these values. */
type FieldsOf<K extends KindName> = K extends keyof Selectable
  ? { readonly [F in Selectable[K]]?: string }
  : Readonly<Record<string, never>>;

/**
 * Uses the API server to list the objects of a kind in a namespace, or those selected by `fields`. If the
 * CustomResourceDefinition is from an older version, `fields` may be ignored.
 *
 * @throws Refusal 503
 */
export type ListLive = <K extends KindName>(
  kind: K,
  namespace: string,
  fields?: FieldsOf<K>,
) => Promise<readonly Cached<K>[]>;

interface LiveListOptions {
  readonly client: Pick<KubeClient, 'list'>;
  readonly keep: <K extends KindName>(object: Cached<K>) => Cached<K>;
}

/**
 * Creates lists that can be used if a decision must not depend on the caches. A call never uses a list that was started
 * earlier. If a list is already running, all calls that arrive in the meantime share the next one, so there's at most
 * one list running per kind, namespace, and selection.
 */
export function createLiveLists({ client, keep }: LiveListOptions): ListLive {
  const flight = createSingleFlight<readonly object[]>();

  async function list(kind: KindName, namespace: string, fieldSelector: string): Promise<readonly object[]> {
    // With a limit, the API server would read all objects from etcd instead of selecting them from its own cache.
    const selection = fieldSelector === '' ? {} : { fieldSelector, limit: 0 };
    try {
      const options = { namespace, ...selection, ...callLimits() };
      return (await client.list<Cached<KindName>, object>(resourceOf(kind), keep, options)).items;
    } catch (cause) {
      // The CustomResourceDefinition is from an older version, which does not have these selectable fields yet.
      if (fieldSelector !== '' && isKubeError(cause, 400)) return list(kind, namespace, '');
      throw kubeRefusal(cause);
    }
  }

  return async <K extends KindName>(kind: K, namespace: string, fields: FieldsOf<K> = {} as FieldsOf<K>) => {
    const selector = Object.entries(fields)
      .map(([field, value]) => `${field}=${value}`)
      .join(',');
    return (await flight(`${kind}/${namespace}/${selector}`, () =>
      list(kind, namespace, selector),
    )) as readonly Cached<K>[];
  };
}

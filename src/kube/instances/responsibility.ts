import { DEFAULT_INSTANCE, instanceOf } from '../../api/instance.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { KubeClient } from '../client.ts';
import { cacheBehind } from '../kube-error.ts';
import type { AnyObject } from '../object.ts';
import type { Reflector } from '../reflector.ts';
import { resourceOf } from '../resource.ts';
import { createView, type View } from './view.ts';

/** Either a Workspace or an Account. */
type Assigned = AnyObject & { readonly spec: { readonly instance?: string | undefined } };

/** The namespace fields used to find the responsible installation if there is no Workspace. */
export interface Home {
  readonly instance: string;
}

interface ResponsibilityDeps<W extends Assigned> {
  /** The name of this installation. */
  readonly instance: string;
  /** All Workspaces in the cluster. */
  readonly workspaces: Reflector<W>;
  /**
   * All namespaces with a Sluice label. If this is not set, all namespaces that don't have a Workspace belong to the
   * default installation.
   */
  readonly namespaces?: Reflector<Home>;
  readonly client: Pick<KubeClient, 'get'>;
  readonly log: Logger;
}

/** Returns the name of the installation responsible for a namespace. */
export function instanceFor(workspace: Pick<Assigned, 'spec'> | undefined, home: Home | undefined): string {
  return workspace === undefined ? (home?.instance ?? DEFAULT_INSTANCE) : instanceOf(workspace);
}

/**
 * Limits the caches of an installation to its own objects. As a result, everything that uses these caches, including
 * reconcilers and metrics, does not need to be aware of other installations in the cluster.
 *
 * A namespace belongs to the same installation as its Workspace. Without a Workspace, it belongs to the installation
 * specified by its label. Without a label, it belongs to the default installation.
 */
export function createResponsibility<W extends Assigned>(deps: ResponsibilityDeps<W>) {
  const { instance, workspaces, namespaces, client, log } = deps;
  const views: View<unknown>[] = [];
  const flight = createSingleFlight<Assigned | undefined>();

  const isOurs = (namespace: string): boolean =>
    instanceFor(workspaces.store.get(namespace), namespaces?.store.get(namespace)) === instance;

  function turn(namespace: string, before: string, after: string): void {
    if ((before === instance) === (after === instance)) return;
    for (const view of views) view.turn(namespace, after === instance);
  }

  workspaces.subscribe((_change, name, old, current) => {
    const home = namespaces?.store.get(name);
    turn(name, instanceFor(old, home), instanceFor(current, home));
  });
  namespaces?.subscribe((_change, name, old, current) => {
    const workspace = workspaces.store.get(name);
    turn(name, instanceFor(workspace, old), instanceFor(workspace, current));
  });

  /** If the Workspace of a namespace isn't in the cache, this reads it from the API server. */
  async function readWorkspace(name: string): Promise<Assigned | undefined> {
    const read = () => client.get<Assigned>(resourceOf('Workspace'), { name });
    return workspaces.store.get(name) ?? (await flight(name, read));
  }

  function namespaced<P>(reflector: Reflector<P>, namespaceOf: (value: P) => string): Reflector<P> {
    // The metrics read the size. There may be 100,000 objects, but few namespaces.
    const size = (): number => {
      let count = 0;
      for (const [namespace, objects] of reflector.store.countsByIndex('namespace')) {
        if (isOurs(namespace)) count += objects;
      }
      return count;
    };
    const view = createView(reflector, () => rememberLast(isOurs, namespaceOf), log, { size });
    views.push(view as View<unknown>);
    return view;
  }

  async function confirm(key: string): Promise<void> {
    const slash = key.indexOf('/');
    const name = key.slice(0, Math.max(0, slash));
    if (slash < 0 || workspaces.store.get(name) !== undefined) return;
    if ((await readWorkspace(name)) === undefined || workspaces.store.get(name) !== undefined) return;
    throw cacheBehind(`workspace ${name}`);
  }

  return {
    /** Returns a view with the Accounts or Workspaces of this installation. */
    assigned: <P extends Assigned>(reflector: Reflector<P>): Reflector<P> =>
      createView(reflector, () => object => instanceOf(object) === instance, log),
    /** Returns a view with the objects in this installation's namespaces. Needs an index called `namespace`. */
    namespaced,
    /**
     * For a namespace without a Workspace in the cache, this confirms with the API server that there is no Workspace.
     * Without this check, a delay of the watch for Workspaces would assign the objects of the namespace to this
     * installation. Does nothing if the key does not have a namespace.
     *
     * @param key `namespace/name`
     * @throws KubeError that is handled like a conflict if there is a Workspace
     */
    confirm,
    /**
     * Returns true if this installation is responsible for the namespace. The cache may not contain the Workspace yet.
     */
    isResponsibleFor: async (namespace: string): Promise<boolean> =>
      instanceFor(await readWorkspace(namespace), namespaces?.store.get(namespace)) === instance,
  };
}

/** Returns a filter for namespaces. If it is called again with the same namespace, the last result is reused. */
function rememberLast<P>(isOurs: (namespace: string) => boolean, namespaceOf: (value: P) => string) {
  let last: string | undefined;
  let answer = false;
  return (value: P): boolean => {
    const namespace = namespaceOf(value);
    if (namespace !== last) {
      last = namespace;
      answer = isOurs(namespace);
    }
    return answer;
  };
}

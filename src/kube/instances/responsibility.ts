import { DEFAULT_INSTANCE, instanceOf } from '../../api/instance.ts';
import { KINDS } from '../../api/kinds/kinds.ts';
import type { Logger } from '../../telemetry/log.ts';
import { createSingleFlight } from '../../time/single-flight.ts';
import type { KubeClient } from '../client.ts';
import { cacheBehind } from '../kube-error.ts';
import type { AnyObject } from '../object.ts';
import type { Reflector } from '../reflector.ts';
import { resourceOf } from '../resource.ts';
import { createView, type View } from './view.ts';

/** A Workspace or an Account. */
type Assigned = AnyObject & { readonly spec: { readonly instance?: string | undefined } };

/** Fields of a namespace that determine the responsible installation if it has no Workspace. */
export interface Home {
  readonly instance: string;
}

interface ResponsibilityDeps<W extends Assigned> {
  /** Name of this installation. */
  readonly instance: string;
  /** All Workspaces of the cluster. */
  readonly workspaces: Reflector<W>;
  /**
   * Namespaces with a label of Sluice. Without them, all namespaces without a Workspace are left to the default
   * installation.
   */
  readonly namespaces?: Reflector<Home>;
  readonly client: Pick<KubeClient, 'get'>;
  readonly log: Logger;
}

/** Returns the installation that is responsible for a namespace. */
export function instanceFor(workspace: Pick<Assigned, 'spec'> | undefined, home: Home | undefined): string {
  return workspace === undefined ? (home?.instance ?? DEFAULT_INSTANCE) : instanceOf(workspace);
}

/**
 * Limits the caches of an installation to the objects it is responsible for. All that reads them, from reconciling to
 * metrics, then knows nothing of the other installations in the cluster.
 *
 * A namespace belongs to the installation of its Workspace. Without a Workspace, it belongs to the installation that
 * its label names, or else to the default installation.
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

  /** Reads the Workspace of a namespace from the API server if it isn't cached. */
  async function readWorkspace(name: string): Promise<Assigned | undefined> {
    const read = () => client.get<Assigned>(resourceOf(KINDS.Workspace), { name });
    return workspaces.store.get(name) ?? (await flight(name, read));
  }

  function namespaced<P>(reflector: Reflector<P>, namespaceOf: (value: P) => string): Reflector<P> {
    const view = createView(reflector, () => rememberLast(isOurs, namespaceOf), log);
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
    /** Returns a view of the Accounts or Workspaces of this installation. */
    assigned: <P extends Assigned>(reflector: Reflector<P>): Reflector<P> =>
      createView(reflector, () => object => instanceOf(object) === instance, log),
    /** Returns a view of the objects in the namespaces of this installation. Needs an index called `namespace`. */
    namespaced,
    /**
     * Checks with the API server that a namespace without a Workspace has none. Otherwise, its objects would be
     * assigned to this installation while the watch of Workspaces is delayed. Does nothing for keys without a
     * namespace.
     *
     * @param key `namespace/name`
     * @throws KubeError that is handled like a conflict if there is a Workspace
     */
    confirm,
    /** Whether this installation is responsible for the namespace, whose Workspace may not be cached yet. */
    isResponsibleFor: async (namespace: string): Promise<boolean> =>
      instanceFor(await readWorkspace(namespace), namespaces?.store.get(namespace)) === instance,
  };
}

/** Returns a filter by namespace, which reuses its result for consecutive values. */
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

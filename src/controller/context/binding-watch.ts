import type { KubeClient } from '../../kube/client.ts';
import type { NamespacedViews } from '../../kube/namespaced-views.ts';
import type { AnyObject } from '../../kube/object.ts';
import { createReflector } from '../../kube/reflector.ts';
import { ROLE_BINDINGS } from '../../kube/resource.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Backoff } from '../../time/backoff.ts';
import { type Clock, sleep } from '../../time/clock.ts';

/** The maximum time until the API server applies a change to a RoleBinding, in milliseconds. */
export const APPLIED_WITHIN_MS = 5_000;

const BACKOFF: Backoff = { firstMs: 200, mostMs: 60_000 };

/**
 * Watches all RoleBindings with the given name. When one of them is changed, it tries to read the corresponding
 * namespace. Without this read, it would take minutes to detect a missing permission because the API server only checks
 * permissions at the start of a watch.
 *
 * @returns a function that will watch until its signal is aborted
 */
export function createBindingWatch(deps: {
  readonly client: Pick<KubeClient, 'list' | 'watch'>;
  readonly views: Pick<NamespacedViews<AnyObject>, 'access' | 'retry'>;
  readonly role: string;
  readonly clock: Clock;
  readonly log: Logger;
}): (over: AbortSignal) => void {
  const { client, views, role, clock } = deps;

  async function check(namespace: string, isNew: boolean, over: AbortSignal): Promise<void> {
    await sleep(clock, APPLIED_WITHIN_MS, over);
    const access = views.access(namespace);
    if (over.aborted || access === 'closed' || (isNew && access !== 'forbidden')) return;
    await views.retry(namespace);
  }

  return over => {
    const reflector = createReflector<AnyObject, true>({
      client,
      resource: ROLE_BINDINGS,
      metadataOnly: true,
      fieldSelector: `metadata.name=${role}`,
      project: () => true,
      onChange: (change, key) => void check(key.slice(0, key.indexOf('/')), change === 'added', over),
      backoff: BACKOFF,
      clock,
      // If an administrator creates the RoleBindings, the controller doesn't need permission to list them.
      log: deps.log.child({}, { level: 'error' }),
    });
    void reflector.run(over);
  };
}

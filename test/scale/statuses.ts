import { setTimeout as delay } from 'node:timers/promises';
import type { KubeClient } from '../../src/kube/client.ts';
import type { AnyObject } from '../../src/kube/object.ts';
import type { Resource } from '../../src/kube/resource.ts';

type WithStatus = AnyObject & { readonly status?: unknown };

/** Records the statuses of all objects of a kind. */
export interface StatusRecorder {
  /**
   * Stops recording. Returns the objects which had more than one status, with the resourceVersion and the JSON of each
   * status. A repeated request with the same status does not count.
   */
  readonly take: () => Record<string, readonly string[]>;
}

/** Records all changes from now on. The server closes a watch after a few minutes, so it is opened again. */
export async function recordStatuses(client: KubeClient, resource: Resource): Promise<StatusRecorder> {
  const stop = new AbortController();
  const { signal } = stop;
  const seen = new Map<string, string[]>();
  let { resourceVersion } = await client.list(resource, () => undefined);

  async function record(): Promise<void> {
    for await (const { object } of client.watch<WithStatus>(resource, { resourceVersion, signal })) {
      const { namespace, name, resourceVersion: version } = object.metadata;
      resourceVersion = version;
      if (object.status === undefined || name === undefined) continue;
      const status = JSON.stringify(object.status);
      const key = `${namespace}/${name}`;
      const statuses = seen.get(key);
      if (statuses === undefined) seen.set(key, [`${version} ${status}`]);
      else if (!statuses.at(-1)?.endsWith(` ${status}`)) statuses.push(`${version} ${status}`);
    }
  }
  void (async () => {
    while (!signal.aborted) {
      await record().catch(() => {});
      await delay(100);
    }
  })();

  return {
    take: () => {
      stop.abort();
      return Object.fromEntries([...seen].filter(([, { length }]) => length > 1));
    },
  };
}

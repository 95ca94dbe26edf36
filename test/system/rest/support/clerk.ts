import type { KindName } from '../../../../src/api/kinds/kinds.ts';
import { connect } from '../../../../src/kube/client.ts';
import { type AnyObject, keyOf } from '../../../../src/kube/object.ts';
import { createReflector } from '../../../../src/kube/reflector.ts';
import { resourceOf } from '../../../../src/kube/resource.ts';
import { createLogger } from '../../../../src/telemetry/log.ts';
import { systemClock } from '../../../../src/time/clock.ts';
import type { Manifest } from '../../support/world.ts';

type Observed = AnyObject & {
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly observedGeneration?: number;
    }[];
  };
};

/** An object with a specific version of its spec. */
export interface Version {
  readonly kind: KindName;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly uid?: string;
  readonly generation?: number;
}

/**
 * Changes objects and watches them until the changes are applied. A watch allows many clients at the same time without
 * polling, and reports a change immediately.
 */
export interface Clerk {
  /** Applies an object using server-side apply with force. Returns the version to wait for. */
  readonly apply: (manifest: Manifest) => Promise<Version>;
  readonly remove: (kind: KindName, namespace: string, name: string) => Promise<void>;
  /**
   * Waits until the condition for this version (or a later one) is `Status/Reason`, and returns the time at which it
   * was observed, by `performance.now()`.
   */
  readonly until: (version: Version, type: string, is: string, withinMs?: number) => Promise<number>;
  readonly close: () => Promise<void>;
}

/** Returns a clerk that watches these kinds, after all of them have been listed. */
export async function openClerk(kubeconfig: string, kinds: readonly KindName[]): Promise<Clerk> {
  const client = connect({ kubeconfig });
  const ending = new AbortController();
  /** The callers waiting for a change, by `Kind namespace/name`. */
  const waiting = new Map<string, Set<() => void>>();
  const log = createLogger({ level: 'silent' });
  const reflectors = new Map(
    kinds.map(kind => [
      kind,
      createReflector<Observed, Observed>({
        client,
        clock: systemClock,
        log,
        resource: resourceOf(kind),
        project: ({ metadata, status }) => ({ metadata, ...(status && { status }) }),
        onChange: (_change, key) => {
          for (const look of waiting.get(`${kind} ${key}`) ?? []) look();
        },
      }),
    ]),
  );
  const running = [...reflectors.values()].map(reflector => reflector.run(ending.signal));
  await Promise.all([...reflectors.values()].map(({ synced }) => synced));

  function conditionOf({ kind, uid, generation = 0, ...name }: Version, type: string): string {
    const object = reflectors.get(kind)?.store.get(keyOf(name));
    const found = object?.status?.conditions?.find(condition => condition.type === type);
    if (found === undefined || (uid !== undefined && object?.metadata.uid !== uid)) return '';
    const { observedGeneration = 0 } = found;
    const judged = observedGeneration >= generation && observedGeneration === object?.metadata.generation;
    return judged ? `${found.status}/${found.reason}` : '';
  }

  return {
    apply: async manifest => {
      const kind = manifest.kind as KindName;
      const { namespace, name } = manifest.metadata;
      const { metadata } = await client.apply(resourceOf(kind), { namespace, name }, manifest, {
        fieldManager: 'test',
        force: true,
      });
      const { uid, generation = 0 } = metadata;
      return { kind, namespace, name, uid, generation };
    },
    remove: async (kind, namespace, name) => {
      await client.remove(resourceOf(kind), { namespace, name });
    },
    until: (version, type, is, withinMs = 60_000) =>
      new Promise((resolve, reject) => {
        const key = `${version.kind} ${keyOf(version)}`;
        const looks = waiting.get(key) ?? new Set();
        waiting.set(key, looks);
        const look = () => {
          if (conditionOf(version, type) !== is) return;
          end();
          resolve(performance.now());
        };
        const timer = setTimeout(() => {
          end();
          const { metadata, status } = reflectors.get(version.kind)?.store.get(keyOf(version)) ?? {};
          const seen = JSON.stringify({ generation: metadata?.generation, conditions: status?.conditions });
          reject(new Error(`${key}: ${type} is not '${is}' after ${withinMs} ms, but ${seen}`));
        }, withinMs);
        const end = () => {
          clearTimeout(timer);
          looks.delete(look);
        };
        looks.add(look);
        look();
      }),
    close: async () => {
      ending.abort();
      await Promise.all(running);
      await client.close();
    },
  };
}

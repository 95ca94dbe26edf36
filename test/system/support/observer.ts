import type { KindName } from '../../../src/api/kinds/kinds.ts';
import { connect } from '../../../src/kube/client.ts';
import { EVENTS, resourceOf } from '../../../src/kube/resource.ts';
import { eventually, pauseFrom } from './deadline.ts';

interface Observed {
  readonly metadata: { readonly generation?: number; readonly resourceVersion: string; readonly uid: string };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly observedGeneration?: number;
    }[];
  };
}

interface EventObject {
  readonly reason: string;
  readonly type: string;
  readonly involvedObject?: { readonly kind: string; readonly name: string };
}

/** Reads and changes the cluster like kubectl, but without starting a process for each command. */
export interface Observer {
  /** Returns the condition as `Status/Reason` if it applies to the current generation, or an empty string otherwise. */
  readonly conditionOf: (kind: KindName, name: string, namespace?: string, type?: string) => Promise<string>;
  /** Returns the resourceVersion, which changes on each write, or an empty string if the object does not exist. */
  readonly versionOf: (kind: KindName, name: string, namespace?: string) => Promise<string>;
  /** Waits until the condition has this value. Returns the elapsed time in milliseconds. */
  readonly until: (
    what: readonly [kind: KindName, name: string, namespace: string | undefined, type: string, is: string],
    withinMs?: number,
  ) => Promise<number>;
  /** Waits until the object no longer exists. Returns the elapsed time in milliseconds. */
  readonly untilGone: (
    what: readonly [kind: KindName, name: string, namespace: string | undefined],
    withinMs?: number,
  ) => Promise<number>;
  /** Applies an object using server-side apply, as the user `test`. */
  readonly apply: (manifest: {
    readonly kind: string;
    readonly metadata: object;
    readonly [field: string]: unknown;
  }) => Promise<void>;
  readonly remove: (kind: KindName, name: string, namespace?: string) => Promise<boolean>;
  readonly exists: (kind: KindName, name: string, namespace?: string) => Promise<boolean>;
  /** Returns `Kind/name reason` for all Events so far. */
  readonly events: () => Promise<string[]>;
  /** Waits until there is a `Kind/name reason` Event. The controller sends Events after the change they are about. */
  readonly untilEvent: (event: string, withinMs?: number) => Promise<void>;
  readonly close: () => Promise<void>;
}

const nameOf = (name: string, namespace: string | undefined) =>
  namespace === undefined ? { name } : { name, namespace };

export function observe(kubeconfig: string): Observer {
  const client = connect({ kubeconfig });
  const events = async () => {
    const nameOfEvent = ({ involvedObject, reason }: EventObject) =>
      `${involvedObject?.kind}/${involvedObject?.name} ${reason}`;
    return (await client.list(EVENTS, nameOfEvent)).items;
  };

  async function conditionOf(kind: KindName, name: string, namespace?: string, type = 'Ready'): Promise<string> {
    const object = await client.get<Observed>(resourceOf(kind), nameOf(name, namespace));
    const found = object?.status?.conditions?.find(condition => condition.type === type);
    return found === undefined || found.observedGeneration !== object?.metadata.generation
      ? ''
      : `${found.status}/${found.reason}`;
  }

  const exists = async (kind: KindName, name: string, namespace?: string) =>
    (await client.get(resourceOf(kind), nameOf(name, namespace))) !== undefined;

  return {
    conditionOf,
    versionOf: async (kind, name, namespace) =>
      (await client.get<Observed>(resourceOf(kind), nameOf(name, namespace)))?.metadata.resourceVersion ?? '',
    until: async ([kind, name, namespace, type, is], withinMs = 60_000) => {
      let last = '';
      const probe = async () => (last = await conditionOf(kind, name, namespace, type)) === is;
      try {
        return (await eventually('', probe, { withinMs, everyMs: pauseFrom(5) })).tookMs;
      } catch (cause) {
        throw new Error(`${kind} ${name}: ${type} is '${last}' and not '${is}' after ${withinMs} ms`, { cause });
      }
    },
    untilGone: async (what, withinMs = 60_000) =>
      (
        await eventually(`${what[0]} ${what[1]} is deleted`, async () => !(await exists(...what)), {
          withinMs,
          everyMs: pauseFrom(10),
        })
      ).tookMs,
    apply: async manifest => {
      const { kind, metadata } = manifest;
      const { name, namespace } = metadata as { name: string; namespace?: string };
      await client.apply(resourceOf(kind as KindName), nameOf(name, namespace), manifest, {
        fieldManager: 'test',
        force: true,
      });
    },
    remove: (kind, name, namespace) => client.remove(resourceOf(kind), nameOf(name, namespace)),
    exists,
    events,
    untilEvent: async (event, withinMs = 60_000) => {
      const isThere = async () => (await events()).includes(event);
      await eventually(`the Event ${event}`, isThere, { withinMs, everyMs: pauseFrom(100, 1_000) });
    },
    close: client.close,
  };
}

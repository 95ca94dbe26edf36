import { isDeepStrictEqual } from 'node:util';
import { CONDITION } from '../../api/condition-reasons.ts';
import { FIELD_MANAGER } from '../../api/well-known.ts';
import type { KubeClient } from '../../kube/client.ts';
import { type AnyObject, type KubeObject, keyOf, type ObjectMeta } from '../../kube/object.ts';
import type { Resource } from '../../kube/resource.ts';
import { compareResourceVersions, isOlder } from '../../kube/resource-version.ts';
import { type Condition, type DesiredCondition, mergeConditions } from './conditions.ts';

/** Status fields common to all kinds. */
export type CommonStatus = {
  readonly observedGeneration?: number | undefined;
  readonly conditions?: readonly Condition[] | undefined;
};

export type StatusWriter<Spec, Status extends CommonStatus> = {
  /**
   * Returns the object with the most recently written status. Required if the cache does not contain this status yet.
   */
  readonly latest: (object: KubeObject<Spec, Status>) => KubeObject<Spec, Status>;
  /** Writes the status if it has changed. Returns whether the status was written. @throws KubeError */
  readonly write: (
    object: KubeObject<Spec, Status>,
    fields: object,
    conditions: readonly DesiredCondition[],
    signal?: AbortSignal,
  ) => Promise<boolean>;
  /**
   * Returns true if the change was only caused by our own write, so the object does not need to be reconciled. Since a
   * relist can merge this change with an earlier change made by a user, this returns true at most once for each write.
   */
  readonly takeEcho: (old: AnyObject | undefined, current: AnyObject) => boolean;
  readonly forget: (key: string) => void;
};

/**
 * Creates a writer that updates the status subresource using server-side apply. Conflicts are forced because no other
 * manager should own the status. Fields and conditions of this kind that other managers have added are removed, for
 * example those of a status that was restored from a backup. Conditions of other types are left alone, even if they are
 * among those to write because a kind carries over the current ones.
 *
 * @param wallMs returns milliseconds since the epoch, used for `lastTransitionTime`
 */
export function createStatusWriter<Spec, Status extends CommonStatus>(options: {
  client: Pick<KubeClient, 'apply' | 'mergePatch'>;
  resource: Resource;
  wallMs: () => number;
}): StatusWriter<Spec, Status> {
  const { resource, wallMs } = options;
  const owns = conditionsOf(resource.kind);
  /** Written statuses which are not in the cache yet. */
  const written = new Map<
    string,
    { readonly uid: string; readonly resourceVersion: string; readonly status: Status }
  >();

  /**
   * The writes that are in progress. Often, the watch will deliver the change before the response to the write is
   * received. In this case, `heard` is the version that was received from the watch.
   */
  const flying = new Map<string, { readonly uid: string; readonly status: CommonStatus; heard: string | undefined }>();

  function latest(object: KubeObject<Spec, Status>): KubeObject<Spec, Status> {
    const key = keyOf(object.metadata);
    const own = written.get(key);
    if (own === undefined) return object;
    const { uid, resourceVersion } = object.metadata;
    if (own.uid === uid && isOlder(resourceVersion, own.resourceVersion)) return { ...object, status: own.status };
    written.delete(key);
    return object;
  }

  return {
    latest,
    write: async (object, fields, desired, signal) => {
      const { metadata, status } = latest(object);
      const generation = metadata.generation ?? 0;
      const own = desired.filter(owns);
      const conditions = mergeConditions(status?.conditions ?? [], own, { generation, nowMs: wallMs() });
      const next = withoutUndefined({ ...fields, observedGeneration: generation, conditions });
      if (sameStatus(status, next, owns)) return false;
      const key = keyOf(metadata);
      const sent = { uid: metadata.uid, status: next, heard: undefined as string | undefined };
      flying.set(key, sent);
      const answer = await put<Status>(options, owns, metadata, next, signal).finally(() => flying.delete(key));
      const { uid, resourceVersion } = answer.metadata;
      if (answer.status !== undefined && sent.heard !== resourceVersion) {
        written.set(key, { uid, resourceVersion, status: answer.status });
      }
      return true;
    },
    takeEcho: (old, current) => {
      const { metadata } = current;
      const key = keyOf(metadata);
      if (old !== undefined && wentBack(old, current)) {
        // The write was lost because the server was restored to an earlier state.
        written.delete(key);
        return false;
      }
      const sent = flying.get(key);
      if (sent?.uid === metadata.uid && sent.heard === undefined) {
        const { status } = current as KubeObject<Spec, Status>;
        if (!sameStatus(status, sent.status, owns)) return false;
        sent.heard = metadata.resourceVersion;
        return onlyStatusMoved(old, current);
      }
      const own = written.get(key);
      if (own?.uid !== metadata.uid || own.resourceVersion !== metadata.resourceVersion) return false;
      // The cache now contains this status. Remove it here so that we don't store 100,000 statuses twice.
      written.delete(key);
      return onlyStatusMoved(old, current);
    },
    forget: key => written.delete(key),
  };
}

/**
 * Applies the status, and removes everything else from it. Returns the changed object. The API server does not compare
 * uids when writing a status, so an object that was recreated in the meantime keeps this status until it is reconciled.
 */
async function put<Status extends CommonStatus>(
  { client, resource }: { client: Pick<KubeClient, 'apply' | 'mergePatch'>; resource: Resource },
  owns: Owns,
  name: ObjectMeta,
  next: CommonStatus,
  signal: AbortSignal | undefined,
): Promise<KubeObject<unknown, Status>> {
  const body = { status: next };
  const applied = await client.apply<KubeObject<unknown, Status>>(resource, name, body, {
    fieldManager: FIELD_MANAGER.controller,
    force: true,
    subresource: 'status',
    signal,
  });
  const leftovers = applied.status && leftoversOf(applied.status, next, owns);
  if (leftovers === undefined) return applied;
  const { resourceVersion } = applied.metadata;
  const patch = { metadata: { resourceVersion }, status: leftovers };
  return client.mergePatch(resource, name, patch, { subresource: 'status', signal });
}

/**
 * Returns true if the second version is older than the first one, which can happen if etcd is restored from a backup.
 */
function wentBack(old: AnyObject, current: AnyObject): boolean {
  const order = compareResourceVersions(current.metadata.resourceVersion, old.metadata.resourceVersion);
  return order !== undefined && order <= 0;
}

function onlyStatusMoved(old: AnyObject | undefined, { metadata }: AnyObject): boolean {
  const { resourceVersion } = metadata;
  return old !== undefined && isDeepStrictEqual({ ...old.metadata, resourceVersion }, metadata);
}

/** Returns true if a condition belongs to the kind. Conditions of other types belong to other managers. */
type Owns = (condition: { readonly type: string }) => boolean;

function conditionsOf(kind: string): Owns {
  const types = (CONDITION as Partial<Record<string, object>>)[kind];
  return ({ type }) => types === undefined || Object.hasOwn(types, type);
}

/**
 * Returns true if both statuses are equal. The order of the conditions is ignored because they are a map by type.
 * Conditions of other managers are ignored as well.
 */
function sameStatus(current: CommonStatus | undefined, next: CommonStatus, owns: Owns): boolean {
  if (current === undefined) return false;
  const sorted = (status: CommonStatus) => ({
    ...status,
    conditions: (status.conditions ?? []).filter(owns).toSorted((a, b) => (a.type < b.type ? -1 : 1)),
  });
  return isDeepStrictEqual(sorted(withoutUndefined(current)), sorted(next));
}

/**
 * Returns the merge patch that removes everything from a status which is not wanted, or undefined if there is nothing
 * to remove. The remaining conditions are the current ones, so that the patch does not change who owns them.
 */
function leftoversOf(current: CommonStatus, next: CommonStatus, owns: Owns): object | undefined {
  const wanted = new Set(next.conditions?.map(({ type }) => type));
  const kept = current.conditions?.filter(each => wanted.has(each.type) || !owns(each));
  const patch = {
    ...unwantedFields(current, next),
    ...(kept?.length === current.conditions?.length ? {} : { conditions: kept }),
  };
  return Object.keys(patch).length === 0 ? undefined : patch;
}

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns a merge patch for all fields that only exist in `current`. */
function unwantedFields(current: object, next: object): object {
  const wanted = new Map<string, unknown>(Object.entries(next));
  const fields = Object.entries(current).flatMap(([field, value]): [string, unknown][] => {
    const other = wanted.get(field);
    if (other === undefined) return [[field, null]];
    const inner = isObject(value) && isObject(other) ? unwantedFields(value, other) : {};
    return Object.keys(inner).length === 0 ? [] : [[field, inner]];
  });
  return Object.fromEntries(fields);
}

/** Returns the value as if it was encoded in JSON, i.e. without undefined fields. */
function withoutUndefined<T extends object>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

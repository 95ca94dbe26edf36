import { isDeepStrictEqual } from 'node:util';
import type { KindName } from '../../api/kinds/kinds.ts';
import type { FieldManager } from '../../api/well-known.ts';
import { COUNTED, type CountedLimit, isInUse } from '../../core/limits/counted-limits.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { isApplied, ownedPart } from '../../kube/managed-fields.ts';
import type { ObjectName } from '../../kube/object.ts';
import { resourceOf } from '../../kube/resource.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { createLocks } from '../../time/locks.ts';
import { noteChange } from '../audit/changes.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';
import { callLimits, fieldManaged, kubeRefusal } from '../caches/kube-failures.ts';
import { conflictingFields, conflictingFieldsWithin } from './field-conflicts.ts';
import type { LimitGuard } from './limit-guard.ts';
import { createWaits, type WaitFor } from './wait.ts';

/** Wanted describes the desired fields of an object for a single apply. */
export interface Wanted<K extends KindName> {
  readonly manager: FieldManager;
  /**
   * All fields this manager should own. Any that were applied earlier but aren't included here will be removed by
   * server-side apply.
   */
  readonly spec: Partial<Cached<K>['spec']>;
  /** The fields written by this manager: fields in `spec`, and fields that must be absent. */
  readonly concern: readonly (keyof Cached<K>['spec'] & string)[];
  /** Object as read before. Not set if the object didn't exist, in which case the write can only create it. */
  readonly before?: Cached<K> | undefined;
  /**
   * If true, the write is rejected if the object has changed since it was read. Should be set for edits that depend on
   * the values read.
   */
  readonly exactly?: boolean;
}

/** ResourceWriter writes custom resources and waits for them to take effect. */
export interface ResourceWriter {
  /**
   * Writes the object using server-side apply and returns its current version. We never force, so other managers'
   * fields won't be overwritten. If the object that was read already is the result, nothing is sent to the API server.
   * If the object is being deleted, waits for up to 5 s before creating a new one.
   *
   * @throws Refusal 409 `field_managed`, `changed_meanwhile`, `being_deleted`, `refused_by_policy`, `limit_reached`,
   *   422, 503
   */
  readonly apply: <K extends KindName>(kind: K, name: ObjectName, wanted: Wanted<K>) => Promise<Cached<K>>;
  /**
   * Repeats an attempt up to five times if the object was changed in the meantime. On this replica, attempts with the
   * same `turn` run sequentially. If they ran at the same time, concurrent edits of a list could use up all retries.
   */
  readonly edit: <T>(attempt: () => Promise<T>, turn?: string) => Promise<T>;
  /** Deletes the object that was read and waits until it no longer exists. */
  readonly remove: (kind: KindName, object: Cached<KindName>) => Promise<void>;
  readonly waitFor: WaitFor;
}

/**
 * As a precondition, this only allows the API server to create an object, and not to change an object that was created
 * since it was read. For this to work, unconditional updates must be prohibited, as they are for custom resources.
 */
const MUST_NOT_EXIST = { resourceVersion: '0' };

const EDITS = 5;
const GONE_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 200;

/** Repeats an attempt that was overtaken by another change. */
async function editOften<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'changed_meanwhile' || tries === EDITS) throw error;
      await sleep(clock, 10 * 2 ** tries * (0.5 + Math.random()));
    }
  }
}

/** Values required to create a resource writer. */
interface WriterParts {
  readonly client: KubeClient;
  readonly caches: Caches;
  readonly limits: Pick<LimitGuard, 'create'>;
  readonly clock: Clock;
}

export function createResourceWriter({ client, caches, limits, clock }: WriterParts): ResourceWriter {
  const waitFor = createWaits(caches, clock);
  const locks = createLocks();

  /** Resolves once there's no object with this uid. @throws `late` after 5 s */
  async function waitUntilGone(kind: KindName, name: ObjectName, uid: string, late: Refusal): Promise<void> {
    const untilMs = clock.nowMs() + GONE_WITHIN_MS;
    while ((await caches.live(kind, name))?.metadata.uid === uid) {
      if (clock.nowMs() >= untilMs) throw late;
      await sleep(clock, LOOK_EVERY_MS);
    }
  }

  async function applyOnce<K extends KindName>(kind: K, name: ObjectName, wanted: Wanted<K>): Promise<Cached<K>> {
    const { manager, spec, before, exactly = false } = wanted;
    const { uid, resourceVersion } = before?.metadata ?? {};
    const metadata = before === undefined ? MUST_NOT_EXIST : exactly ? { uid, resourceVersion } : { uid };
    const body = { metadata, spec };
    try {
      return await client.apply<Cached<K>>(resourceOf(kind), name, body, { fieldManager: manager, ...callLimits() });
    } catch (cause) {
      const refusal = kubeRefusal(cause);
      const present =
        before === undefined && refusal.code === 'invalid_request' ? await caches.live(kind, name) : undefined;
      if (present === undefined) throw refusal;
      if (isAsCreated(present, wanted)) return present;
      // Another caller has just created the object. Retrying will check the existing object.
      throw new Refusal('changed_meanwhile');
    }
  }

  return {
    async apply(kind, name, wanted) {
      const { before, manager, spec, concern } = wanted;
      let present = before;
      if (before?.metadata.deletionTimestamp !== undefined) {
        await waitUntilGone(kind, name, before.metadata.uid, new Refusal('being_deleted'));
        present = undefined;
      }
      if (present !== undefined) {
        assertNotHeld(present, wanted);
        // Applying it again would take the API server several times as long as reading it.
        if (isApplied(present, manager, spec)) return present;
      }
      const write = () => applyOnce(kind, name, { ...wanted, before: present });
      if (present === undefined) await assertFree(caches, kind, name);
      const applied = await (usesMore(kind, present, spec) ? limits.create(kind, name, spec, write) : write());
      noteChange({ kind, before: present, after: applied });
      const held = conflictingFields(applied, spec as Readonly<Record<string, unknown>>, concern, manager);
      if (held.length > 0) throw fieldManaged(held);
      return applied;
    },
    edit: (attempt, turn) =>
      turn === undefined ? editOften(clock, attempt) : locks.exclusively(turn, () => editOften(clock, attempt)),
    async remove(kind, object) {
      const { metadata } = object;
      const name = { namespace: metadata.namespace, name: metadata.name };
      try {
        await client.remove(resourceOf(kind), name, { uid: metadata.uid }, callLimits());
      } catch (cause) {
        // A new object now uses this name, so the previous object no longer exists.
        if (!isKubeError(cause, 409)) throw kubeRefusal(cause);
      }
      noteChange({ kind, before: object, after: undefined });
      const late = new Refusal('not_in_force', 'The object is still being deleted. Try again.');
      await waitUntilGone(kind, name, metadata.uid, late);
    },
    waitFor,
  };
}

/**
 * Returns true if the write can make an object use its limit, and the object did not exist or did not use its limit
 * before.
 */
function usesMore(kind: KindName, present: object | undefined, spec: object): boolean {
  const limit = (COUNTED as Partial<Record<KindName, CountedLimit>>)[kind];
  return limit !== undefined && (present === undefined || !isInUse(limit, present)) && isInUse(limit, { spec });
}

/**
 * Returns true if an object is the result of this write, and has not been changed since. If the response to a write is
 * lost, the client resends it, but it can't create the object twice. An equal call may also have created the object.
 */
function isAsCreated<K extends KindName>(present: Cached<K>, { manager, spec }: Wanted<K>): boolean {
  return present.metadata.generation === 1 && isDeepStrictEqual(ownedPart<object>(present, manager), spec);
}

/** @throws Refusal 409 `field_managed` if a field that would change is owned by another manager */
function assertNotHeld<K extends KindName>(present: Cached<K>, { manager, spec, concern }: Wanted<K>): void {
  const fields = spec as Readonly<Record<string, unknown>>;
  const held = [
    ...conflictingFields(present, fields, absentOf(spec, concern), manager),
    ...conflictingFieldsWithin(present, fields, concern, manager),
  ];
  if (held.length > 0) throw fieldManaged(held);
}

/** @throws Refusal 409 if an object of another installation uses the same name because it would be changed */
async function assertFree(caches: Pick<Caches, 'isTaken'>, kind: KindName, { name }: ObjectName): Promise<void> {
  if ((kind === 'Account' || kind === 'Workspace') && (await caches.isTaken(kind, name))) {
    throw new Refusal('refused_by_policy', `The name ${name} is already in use. Contact the operator.`);
  }
}

/** Returns the fields of the concern that must be absent. */
function absentOf(spec: object, concern: readonly string[]): string[] {
  return concern.filter(field => (spec as Readonly<Record<string, unknown>>)[field] === undefined);
}

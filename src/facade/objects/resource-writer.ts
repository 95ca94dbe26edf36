import type { KindName } from '../../api/kinds/kinds.ts';
import type { FieldManager } from '../../api/well-known.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import type { ObjectName } from '../../kube/object.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import { createLocks } from '../../time/locks.ts';
import { type Cached, RESOURCES } from './cached.ts';
import type { Caches } from './caches.ts';
import { conflictingFields, conflictingFieldsWithin } from './field-conflicts.ts';
import { CALL_WITHIN_MS, fieldManaged, kubeRefusal } from './kube-failures.ts';
import { createWaits, type WaitFor } from './wait.ts';

/** One apply: the desired part of an object for one concern. */
export interface Wanted<K extends KindName> {
  readonly manager: FieldManager;
  /** All fields of this manager. Server-side apply removes its earlier fields that are absent here. */
  readonly spec: Partial<Cached<K>['spec']>;
  /** Fields that this manager writes: those in `spec` and those that must be absent. */
  readonly concern: readonly (keyof Cached<K>['spec'] & string)[];
  /** The object as read; absent if it did not exist. */
  readonly before?: Cached<K> | undefined;
  /** Refuse if the object changed since it was read: for edits based on what was read. */
  readonly exactly?: boolean;
}

/** Writes custom resources and waits until they are in force. */
export interface ResourceWriter {
  /**
   * Applies server-side, never by force. Returns the object as it is now; an apply without changes writes nothing.
   * Waits up to 5 s for an object that is being deleted, then creates it again. @throws Refusal 409 `field_managed`,
   * `changed_meanwhile`, `being_deleted`, 422, 503
   */
  readonly apply: <K extends KindName>(kind: K, name: ObjectName, wanted: Wanted<K>) => Promise<Cached<K>>;
  /**
   * Repeats read and edit up to five times if the object changes in between. Edits with the same `turn` run one at a
   * time on this replica: many edits of one list would otherwise use up their tries on each other.
   */
  readonly edit: <T>(attempt: () => Promise<T>, turn?: string) => Promise<T>;
  /** Deletes exactly the object that was read, and waits until it is gone. */
  readonly remove: (kind: KindName, object: Cached<KindName>) => Promise<void>;
  readonly waitFor: WaitFor;
}

const EDITS = 5;
const GONE_WITHIN_MS = 5_000;
const LOOK_EVERY_MS = 200;

export function createResourceWriter(client: KubeClient, caches: Caches, clock: Clock): ResourceWriter {
  const deadline = () => AbortSignal.timeout(CALL_WITHIN_MS);
  const waitFor = createWaits(caches, clock);
  const locks = createLocks();

  /** Resolves when no object with this uid exists. @throws `late` after 5 s */
  async function waitUntilGone(kind: KindName, name: ObjectName, uid: string, late: Refusal): Promise<void> {
    const untilMs = clock.nowMs() + GONE_WITHIN_MS;
    while ((await caches.live(kind, name))?.metadata.uid === uid) {
      if (clock.nowMs() >= untilMs) throw late;
      await sleep(clock, LOOK_EVERY_MS);
    }
  }

  async function applyOnce<K extends KindName>(kind: K, name: ObjectName, wanted: Wanted<K>): Promise<Cached<K>> {
    const { manager, spec, before, exactly = false } = wanted;
    const metadata = before === undefined ? {} : { uid: before.metadata.uid };
    const version = exactly && before !== undefined ? { resourceVersion: before.metadata.resourceVersion } : {};
    const body = { metadata: { ...metadata, ...version }, spec };
    try {
      return await client.apply<Cached<K>>(RESOURCES[kind], name, body, { fieldManager: manager, signal: deadline() });
    } catch (cause) {
      const refusal = kubeRefusal(cause);
      // Another caller created it concurrently with another immutable value. A retry finds out whose it is.
      const lost =
        before === undefined && refusal.code === 'invalid_request' && (await caches.live(kind, name)) !== undefined;
      throw lost ? new Refusal('changed_meanwhile') : refusal;
    }
  }

  async function editOften<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (!(error instanceof Refusal) || error.code !== 'changed_meanwhile' || tries === EDITS) throw error;
        await sleep(clock, 10 * 2 ** tries * (0.5 + Math.random()));
      }
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
        const fields = spec as Readonly<Record<string, unknown>>;
        const held = [
          ...conflictingFields(present, fields, absentOf(spec, concern), manager),
          ...conflictingFieldsWithin(present, fields, concern, manager),
        ];
        if (held.length > 0) throw fieldManaged(held);
      }
      const applied = await applyOnce(kind, name, { ...wanted, before: present });
      const held = conflictingFields(applied, spec as Readonly<Record<string, unknown>>, concern, manager);
      if (held.length > 0) throw fieldManaged(held);
      return applied;
    },
    edit: (attempt, turn) =>
      turn === undefined ? editOften(attempt) : locks.exclusively(turn, () => editOften(attempt)),
    async remove(kind, { metadata }) {
      const name = { namespace: metadata.namespace, name: metadata.name };
      try {
        await client.remove(RESOURCES[kind], name, { uid: metadata.uid }, { signal: deadline() });
      } catch (cause) {
        // Another object has the name now: this one is gone.
        if (!isKubeError(cause, 409)) throw kubeRefusal(cause);
      }
      const late = new Refusal('not_in_force', 'The object is still being deleted. Try again.');
      await waitUntilGone(kind, name, metadata.uid, late);
    },
    waitFor,
  };
}

/** Returns the fields of the concern that must be absent. */
function absentOf(spec: object, concern: readonly string[]): string[] {
  return concern.filter(field => (spec as Readonly<Record<string, unknown>>)[field] === undefined);
}

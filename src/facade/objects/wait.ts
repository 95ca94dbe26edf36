import { REASON } from '../../api/condition-reasons.ts';
import type { Condition } from '../../api/conditions.ts';
import type { KindName } from '../../api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import { Refusal } from '../../http/refusal.ts';
import { keyOf } from '../../kube/object.ts';
import type { Clock } from '../../time/clock.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';

/** The maximum time a call waits for the controller. */
const WAIT_MS = 5_000;
/** When to ask the API server directly, in case the watch is delayed. */
const LOOK_AT_MS = [1_000, 3_000];

const PAUSED_MEANWHILE = `The workspace was paused. The change has been stored. It is applied when the operator removes the ${PAUSED_ANNOTATION} annotation from the Workspace.`;

const GONE = 'The object was deleted before the change was in force. If you still want it to exist, repeat the call.';

const READY = REASON.Workspace.Ready;
/**
 * The reasons why a Workspace is not ready although everything that a change closes is closed: its keys are applied, or
 * ingress does not accept any events.
 */
const CLOSED_AS_WELL: ReadonlySet<string> = new Set([
  READY.WorkspacePaused,
  READY.NamespaceNotAdopted,
  READY.NamespaceTerminating,
  READY.WaitingForAccount,
]);

/**
 * Waits until the controller has set `condition` on the applied object and then returns the object. The uid must be the
 * same. The condition must be for the applied generation or later.
 *
 * @param unlessReady what to do if the workspace is paused or has an error. The default is to refuse the call. With
 *   `closed`, this returns the object if everything that the change closes is closed
 * @throws Refusal 409 `not_reconcilable` if the object must be edited, 409 `changed_meanwhile` if it is deleted, 409
 *   `workspace_paused`, or 503 `not_in_force` after 5 s. In the latter two cases, the change was stored and the call
 *   can safely be repeated
 */
export type WaitFor = <K extends KindName>(
  kind: K,
  applied: Cached<K>,
  condition?: string,
  unlessReady?: 'refused' | 'closed',
) => Promise<Cached<K>>;

/**
 * Returns the condition for a generation. Returns undefined if the controller has not processed this generation yet.
 */
export function conditionFor(
  object: { readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined },
  type: string,
  generation: number,
): Condition | undefined {
  const found = object.status?.conditions?.find(condition => condition.type === type);
  return found !== undefined && found.observedGeneration >= generation ? found : undefined;
}

export function createWaits(caches: Pick<Caches, 'get' | 'reflector' | 'live'>, clock: Clock): WaitFor {
  return <K extends KindName>(kind: K, applied: Cached<K>, condition = 'Ready', unlessReady = 'refused') => {
    const { metadata } = applied;
    const name = { namespace: metadata.namespace, name: metadata.name };
    const key = keyOf(name);
    const generation = metadata.generation ?? 0;
    const { promise, resolve, reject } = Promise.withResolvers<Cached<K>>();

    /**
     * @param isNew true if this state is at least as new as the call. A pause that is over may still be shown before
     *   that
     */
    function look(object: Cached<K> | undefined, isNew = true): void {
      if (object === undefined || object.metadata.uid !== metadata.uid) return;
      if (conditionFor(object, condition, generation)?.status === 'True') return resolve(object);
      const reason = conditionFor(object, 'Ready', generation)?.reason;
      if (unlessReady === 'closed' && reason !== undefined && CLOSED_AS_WELL.has(reason)) return resolve(object);
      if (reason === READY.WorkspacePaused && isNew) return reject(new Refusal('workspace_paused', PAUSED_MEANWHILE));
      const stalled = conditionFor(object, 'Stalled', generation);
      // Missing references aren't final: the object will be reconciled once they exist.
      if (stalled?.status === 'True' && !stalled.reason.startsWith('WaitingFor')) {
        reject(new Refusal('not_reconcilable', `${stalled.reason}: ${stalled.message}`));
      }
    }

    const unsubscribe = caches.reflector(kind).subscribe((change, changed, old, current) => {
      if (changed !== key) return;
      if (change === 'deleted' && old?.metadata.uid === metadata.uid) reject(new Refusal('changed_meanwhile', GONE));
      else look(current);
    });
    const timers = [
      ...LOOK_AT_MS.map(atMs =>
        clock.setTimer(() => {
          // Ignore errors here, since the watch may still receive the object. The wait is limited by the deadline.
          caches.live(kind, name).then(
            found => look(found),
            () => undefined,
          );
        }, atMs),
      ),
      clock.setTimer(() => {
        const current = (caches.get(kind, name) as Cached<K> | undefined)?.status?.conditions?.find(
          ({ type }) => type === condition,
        );
        const detail = current === undefined ? '' : ` (${condition} is ${current.status}: ${current.message})`;
        reject(
          new Refusal(
            'not_in_force',
            `The change has been stored, but it was not in force after 5 s${detail}. Try again.`,
          ),
        );
      }, WAIT_MS),
    ];
    look(applied, false);
    look(caches.get(kind, name), false);
    return promise.finally(() => {
      unsubscribe();
      for (const cancel of timers) cancel();
    });
  };
}

import type { KindName } from '../../api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Cached, Caches } from '../caches/caches.ts';
import { findCondition } from '../engine/conditions.ts';
import type { Attempt } from '../engine/keyed-controller.ts';
import type { Finalization, Outcome } from '../engine/outcome.ts';
import type { CommonStatus } from '../engine/status-writer.ts';
import type { InForce } from '../routes/closing.ts';
import { type Context, FINALIZER_TIMEOUT_MS } from './context.ts';

/** Returns whether the workspace is paused. One that is being deleted is not, because its routing must close. */
export function isPaused(caches: Pick<Caches, 'Workspace'>, name: string): boolean {
  const metadata = caches.Workspace.store.get(name)?.metadata;
  return metadata?.annotations?.[PAUSED_ANNOTATION] === 'true' && metadata.deletionTimestamp === undefined;
}

/**
 * Returns the status of an object while its workspace is paused. It stays if it is of the current generation. Otherwise
 * Ready reports the pause, and the other conditions stay, marked with the older generation.
 */
export function planPaused(
  { metadata, status }: AnyObject & { readonly status?: CommonStatus | undefined },
  workspace: string,
): Outcome {
  const { conditions = [], observedGeneration: _, ...fields } = status ?? {};
  const judged = findCondition(conditions, 'Ready')?.observedGeneration === metadata.generation;
  const failing = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  if (judged && !failing) return { status: fields, conditions };
  const message = `workspace ${workspace} is paused by the annotation ${PAUSED_ANNOTATION}. Events continue to flow, and changes that do not close a gate wait until you remove the annotation`;
  const kept = conditions.filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type));
  return {
    status: fields,
    conditions: [{ type: 'Ready', status: 'Unknown', reason: 'WorkspacePaused', message }, ...kept],
  };
}

/** Requeue interval of a deletion in a paused workspace, ms. */
const PAUSED_CHECK_MS = 5_000;

export interface Pausable<K extends KindName> {
  readonly kind: K;
  /** Returns the name of the workspace whose pause affects the object. */
  readonly workspaceOf: (object: Cached<K>) => string;
}

function inNamespace<K extends KindName>(kind: K): Pausable<K> {
  return { kind, workspaceOf: ({ metadata }) => metadata.namespace as string };
}

/**
 * The kinds whose reconciling waits for a pause. Activations (by pairs) and Subscriptions (by producer) handle it
 * themselves. Blocks only close, and Accounts belong to no workspace.
 */
export const PAUSABLE = {
  Workspace: { kind: 'Workspace', workspaceOf: ({ metadata }) => metadata.name } satisfies Pausable<'Workspace'>,
  CatalogStream: inNamespace('CatalogStream'),
  Package: inNamespace('Package'),
  Integration: inNamespace('Integration'),
} as const;

type StatusOf<K extends KindName> = NonNullable<Cached<K>['status']>;

/**
 * Wraps `reconcile`: objects of a paused workspace only report the pause. They are enqueued again when its routes are
 * applied.
 *
 * @param closes returns whether the object only closes; such objects are reconciled regardless
 */
export function unlessPaused<K extends KindName>(
  { caches }: Pick<Context, 'caches'>,
  { workspaceOf }: Pausable<K>,
  reconcile: (object: Cached<K>, attempt: Attempt) => Promise<Outcome<StatusOf<K>>>,
  closes: (object: Cached<K>) => boolean = () => false,
): typeof reconcile {
  return async (object, attempt) => {
    const workspace = workspaceOf(object);
    const waits = isPaused(caches, workspace) && !closes(object);
    return waits ? planPaused(object, workspace) : reconcile(object, attempt);
  };
}

/** Waits until the routes of the object are applied; in a paused workspace, only what closes. */
export function settled(
  { caches, tenants }: Pick<Context, 'caches' | 'tenants'>,
  name: string,
  object: AnyObject,
): Promise<InForce> {
  return isPaused(caches, name) ? tenants.closedBy(name, object) : tenants.inForce(name, object);
}

/** Wraps `finalize`: in a paused workspace it waits for the end of the pause, at most as long as for Redis. */
export function finalizeUnlessPaused<K extends KindName>(
  context: Pick<Context, 'caches' | 'deletingForMs' | 'recordForcedRemoval'>,
  { kind, workspaceOf }: Pausable<K>,
  finalize: (object: Cached<K>, attempt: Attempt) => Promise<Finalization<StatusOf<K>>>,
): typeof finalize {
  return async (object, attempt) => {
    const workspace = workspaceOf(object);
    if (!isPaused(context.caches, workspace)) return finalize(object, attempt);
    if (context.deletingForMs(object) < FINALIZER_TIMEOUT_MS) {
      return { ...planPaused(object, workspace), waitingMs: PAUSED_CHECK_MS };
    }
    context.recordForcedRemoval(kind, object, 'paused');
    return 'done';
  };
}

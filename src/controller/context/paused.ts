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

/**
 * Returns true if this workspace is paused. A workspace which is being deleted is never considered paused, because its
 * routes need to be closed.
 */
export function isPaused(caches: Pick<Caches, 'Workspace'>, name: string): boolean {
  const metadata = caches.Workspace.store.get(name)?.metadata;
  return metadata?.annotations?.[PAUSED_ANNOTATION] === 'true' && metadata.deletionTimestamp === undefined;
}

/**
 * Returns the status to use for an object while its workspace is paused. A status for the current generation is not
 * changed. For any other status, the Ready condition indicates the pause. All other conditions keep their observed
 * generation.
 */
export function planPaused(
  { metadata, status }: AnyObject & { readonly status?: CommonStatus | undefined },
  workspace: string,
): Outcome {
  const { conditions = [], observedGeneration: _, ...fields } = status ?? {};
  if (isJudged({ metadata, status })) return { status: fields, conditions };
  const message = `workspace ${workspace} is paused by the ${PAUSED_ANNOTATION} annotation. Events continue to flow. Changes that do not close a gate wait until you remove the annotation`;
  const kept = conditions.filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type));
  return {
    status: fields,
    conditions: [{ type: 'Ready', status: 'Unknown', reason: 'WorkspacePaused', message }, ...kept],
  };
}

/** Returns true if the status is that of the current generation, and is not a failure. */
function isJudged({ metadata, status }: AnyObject & { readonly status?: CommonStatus | undefined }): boolean {
  const failing = findCondition(status?.conditions, 'Reconciling')?.reason === 'Retrying';
  return !failing && findCondition(status?.conditions, 'Ready')?.observedGeneration === metadata.generation;
}

/** Requeue interval in milliseconds for objects being deleted in a paused workspace. */
const PAUSED_CHECK_MS = 5_000;

export interface Pausable<K extends KindName> {
  readonly kind: K;
  /** Returns the name of the workspace that can pause this object. */
  readonly workspaceOf: (object: Cached<K>) => string;
}

function inNamespace<K extends KindName>(kind: K): Pausable<K> {
  return { kind, workspaceOf: ({ metadata }) => metadata.namespace as string };
}

/**
 * Kinds which are not reconciled during a pause. Activations and Subscriptions are not included, because their
 * reconcilers handle pauses themselves. Blocks are not included because they can only close routes, and Accounts
 * because they don't belong to a workspace.
 */
export const PAUSABLE = {
  Workspace: { kind: 'Workspace', workspaceOf: ({ metadata }) => metadata.name } satisfies Pausable<'Workspace'>,
  CatalogStream: inNamespace('CatalogStream'),
  Package: inNamespace('Package'),
  Integration: inNamespace('Integration'),
} as const;

type StatusOf<K extends KindName> = NonNullable<Cached<K>['status']>;

/**
 * Wraps `reconcile`. If an object's workspace is paused, only the status is updated to show this. The object is
 * enqueued again after the routes of the workspace have been applied.
 *
 * @param options.closes returns true if the object can only close routes, in which case it is reconciled even during a
 * pause
 * @param options.untilClosed waits until a change has closed everything that it closes. The pause is shown after that
 */
export function unlessPaused<K extends KindName>(
  { caches }: Pick<Context, 'caches'>,
  { workspaceOf }: Pausable<K>,
  reconcile: (object: Cached<K>, attempt: Attempt) => Promise<Outcome<StatusOf<K>>>,
  options: {
    readonly closes?: (object: Cached<K>) => boolean;
    readonly untilClosed?: (object: Cached<K>) => Promise<void>;
  } = {},
): typeof reconcile {
  const { closes = () => false, untilClosed = async () => {} } = options;
  return async (object, attempt) => {
    const workspace = workspaceOf(object);
    if (!isPaused(caches, workspace) || closes(object)) return reconcile(object, attempt);
    if (!isJudged(object)) await untilClosed(object);
    return planPaused(object, workspace);
  };
}

/**
 * Waits until this object's routes have been applied. In a paused workspace, this only covers changes that close
 * routes.
 */
export function settled(
  { caches, tenants }: Pick<Context, 'caches' | 'tenants'>,
  name: string,
  object: AnyObject,
): Promise<InForce> {
  return isPaused(caches, name) ? tenants.closedBy(name, object) : tenants.inForce(name, object);
}

/**
 * Waits until this object's closing changes have been applied. Unlike other changes, this does not need the Secrets of
 * the workspace.
 */
export function settledClosing(
  context: Pick<Context, 'caches' | 'tenants' | 'secretAccess'>,
  name: string,
  object: AnyObject,
): Promise<InForce> {
  if (context.secretAccess.knows(name)) return settled(context, name, object);
  return context.tenants.closedBy(name, object);
}

/**
 * Wraps `finalize` so that it waits for the end of a pause. It will not wait any longer than it would wait for Redis,
 * unless data would be lost.
 *
 * @param holdsData returns true if the object has to be kept because of its data
 */
export function finalizeUnlessPaused<K extends KindName>(
  context: Pick<Context, 'caches' | 'stuckForMs' | 'noteWaiting' | 'recordForcedRemoval'>,
  { kind, workspaceOf }: Pausable<K>,
  finalize: (object: Cached<K>, attempt: Attempt) => Promise<Finalization<StatusOf<K>>>,
  holdsData: (object: Cached<K>) => Promise<boolean>,
): typeof finalize {
  return async (object, attempt) => {
    const workspace = workspaceOf(object);
    if (!isPaused(context.caches, workspace)) {
      const answer = await finalize(object, attempt);
      if (answer !== 'done') context.noteWaiting(object);
      return answer;
    }
    if (context.stuckForMs(object) < FINALIZER_TIMEOUT_MS || (await holdsData(object))) {
      return { ...planPaused(object, workspace), waitingMs: PAUSED_CHECK_MS };
    }
    context.recordForcedRemoval(kind, object, 'paused');
    return 'done';
  };
}

import type { KindName } from '../../api/kinds/kinds.ts';
import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { Cached, World } from '../caches/caches.ts';
import { findCondition } from '../engine/conditions.ts';
import type { ReconcileContext } from '../engine/keyed-controller.ts';
import type { Finalization, Outcome } from '../engine/outcome.ts';
import type { CommonStatus } from '../engine/status-writer.ts';
import type { InForce } from '../routes/closing.ts';
import { LET_GO_AFTER_MS, type Room } from './context.ts';

/** Whether the workspace is paused. One that is being deleted is not: its routing has to close. */
export function isPaused(world: Pick<World, 'Workspace'>, name: string): boolean {
  const metadata = world.Workspace.store.get(name)?.metadata;
  return metadata?.annotations?.[PAUSED_ANNOTATION] === 'true' && metadata.deletionTimestamp === undefined;
}

/**
 * The status of an object while its workspace is paused: as it is, when it was judged from the present generation; else
 * it says why not. What follows from an older generation stays, marked with that generation.
 */
export function planPaused(
  { metadata, status }: AnyObject & { readonly status?: CommonStatus | undefined },
  workspace: string,
): Outcome {
  const { conditions = [], observedGeneration: _, ...fields } = status ?? {};
  const judged = findCondition(conditions, 'Ready')?.observedGeneration === metadata.generation;
  const failing = findCondition(conditions, 'Reconciling')?.reason === 'Retrying';
  if (judged && !failing) return { status: fields, conditions };
  const message = `workspace ${workspace} is paused by the annotation ${PAUSED_ANNOTATION}: data flows as before, what closes takes effect, other changes wait`;
  const kept = conditions.filter(({ type }) => !['Ready', 'Reconciling', 'Stalled'].includes(type));
  return {
    status: fields,
    conditions: [{ type: 'Ready', status: 'Unknown', reason: 'WorkspacePaused', message }, ...kept],
  };
}

/** How often a deletion in a paused workspace is looked at, ms. */
const PAUSED_CHECK_MS = 5_000;

export interface Pausable<K extends KindName> {
  readonly kind: K;
  /** Name of the workspace whose pause concerns the object. */
  readonly workspaceOf: (object: Cached<K>) => string;
}

function inNamespace<K extends KindName>(kind: K): Pausable<K> {
  return { kind, workspaceOf: ({ metadata }) => metadata.namespace as string };
}

/**
 * Activations go by pairs, and a Subscription is in the routes of its producer: they have no place here. Blocks only close;
 * Accounts belong to no workspace.
 */
export const PAUSABLE = {
  Workspace: { kind: 'Workspace', workspaceOf: ({ metadata }) => metadata.name } satisfies Pausable<'Workspace'>,
  CatalogStream: inNamespace('CatalogStream'),
  Package: inNamespace('Package'),
  Integration: inNamespace('Integration'),
} as const;

type StatusOf<K extends KindName> = NonNullable<Cached<K>['status']>;

/**
 * `reconcile`, but for objects of a paused workspace, which only say so. They go on when its routes come into force again.
 *
 * @param closes tells of an object that it only closes: such ones are reconciled all the same
 */
export function unlessPaused<K extends KindName>(
  { world }: Pick<Room, 'world'>,
  { workspaceOf }: Pausable<K>,
  reconcile: (object: Cached<K>, context: ReconcileContext) => Promise<Outcome<StatusOf<K>>>,
  closes: (object: Cached<K>) => boolean = () => false,
): typeof reconcile {
  return async (object, context) => {
    const workspace = workspaceOf(object);
    const waits = isPaused(world, workspace) && !closes(object);
    return waits ? planPaused(object, workspace) : reconcile(object, context);
  };
}

/** Waits until the routes that were made of the object are in force; in a paused workspace, what closes of them. */
export function settled(
  { world, tenants }: Pick<Room, 'world' | 'tenants'>,
  name: string,
  object: AnyObject,
): Promise<InForce> {
  return isPaused(world, name) ? tenants.closedBy(name, object) : tenants.inForce(name, object);
}

/** `finalize`, but in a paused workspace it waits for the end of the pause, and no longer than for a Redis that is away. */
export function finalizeUnlessPaused<K extends KindName>(
  room: Pick<Room, 'world' | 'deletingForMs' | 'tellLetGo'>,
  { kind, workspaceOf }: Pausable<K>,
  finalize: (object: Cached<K>, context: ReconcileContext) => Promise<Finalization<StatusOf<K>>>,
): typeof finalize {
  return async (object, context) => {
    const workspace = workspaceOf(object);
    if (!isPaused(room.world, workspace)) return finalize(object, context);
    if (room.deletingForMs(object) < LET_GO_AFTER_MS) {
      return { ...planPaused(object, workspace), waitingMs: PAUSED_CHECK_MS };
    }
    room.tellLetGo(kind, object, 'paused');
    return 'done';
  };
}

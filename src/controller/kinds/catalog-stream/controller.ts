import type { Caches } from '../../caches/caches.ts';
import { fromAdoptions, fromWorkspaces, keysInNamespace } from '../../caches/related-keys.ts';
import type { Context } from '../../context/context.ts';
import { finalizeUnlessPaused, PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizeStream, holdsEvents, reconcileStream } from './reconcile.ts';

export const createStreamControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('catalogstream', WAITING_WORKERS),
    reflector: context.caches.CatalogStream,
    reconcile: unlessPaused(context, PAUSABLE.CatalogStream, reconcileStream(context)),
    finalize: reportIfCutShort(
      context,
      finalizeUnlessPaused(context, PAUSABLE.CatalogStream, finalizeStream(context), holdsEvents(context)),
    ),
    sources: [
      fromWorkspaces(context.caches, 'CatalogStream'),
      fromAdoptions(context.caches, namespace => keysInNamespace(context.caches, 'CatalogStream', namespace)),
      fromDeletedNamespaces(context.caches),
    ],
  }),
];

/**
 * Maps a namespace that is being deleted to its streams. After that, they don't have to wait for their queues to drain.
 */
function fromDeletedNamespaces(caches: Caches): KeySource {
  return keysFrom(caches.namespaces, (old, current) =>
    current?.deleting && !old?.deleting ? keysInNamespace(caches, 'CatalogStream', current.workspace) : [],
  );
}

type Finalize = ReturnType<typeof finalizeUnlessPaused<'CatalogStream'>>;

/** Wraps `finalize` so that an Event is recorded if the finalizer is removed by someone else in the meantime. */
function reportIfCutShort({ caches, recordForcedRemoval }: Context, finalize: Finalize): Finalize {
  /** The signals of the terms in which the deletions have begun, by UID. */
  const unfinished = new Map<string, AbortSignal>();
  caches.CatalogStream.subscribe((_change, _key, old, current) => {
    if (old === undefined || old.metadata.uid === current?.metadata.uid) return;
    const term = unfinished.get(old.metadata.uid);
    unfinished.delete(old.metadata.uid);
    if (term?.aborted === false) recordForcedRemoval('CatalogStream', old, 'draining');
  });
  return async (stream, attempt) => {
    const { uid } = stream.metadata;
    unfinished.set(uid, attempt.signal);
    const result = await finalize(stream, attempt);
    if (result === 'done') unfinished.delete(uid);
    return result;
  };
}

import type { Caches } from '../../caches/caches.ts';
import { fromAdoptions, fromWorkspaces, keysInNamespace } from '../../caches/related-keys.ts';
import { finalizeUnlessPaused, PAUSABLE, unlessPaused } from '../../context/paused.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';
import { createKindController } from '../../engine/kind-controller.ts';
import { type CreateControllers, WAITING_WORKERS } from '../kind.ts';
import { finalizeStream, reconcileStream } from './reconcile.ts';

export const createStreamControllers: CreateControllers = ({ context, engine }) => [
  createKindController({
    ...engine('catalogstream', WAITING_WORKERS),
    reflector: context.caches.CatalogStream,
    reconcile: unlessPaused(context, PAUSABLE.CatalogStream, reconcileStream(context)),
    finalize: finalizeUnlessPaused(context, PAUSABLE.CatalogStream, finalizeStream(context)),
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

import { resourceOf } from '../../kube/resource.ts';
import type { DrainState } from '../../record/control-store.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Caches } from '../caches/caches.ts';
import type { EventRecorder } from '../engine/event-recorder.ts';

/** Called after a stream has replaced one with the same name, whose undelivered events were removed. */
export type OnEventsRemoved = (stream: { readonly tenant: string; readonly queue: string }, left: DrainState) => void;

const MESSAGE =
  'Another CatalogStream with this name was deleted without its finalizer. Its undelivered events were removed because this is a new object';

/** Returns a listener that logs the removal and records an Event on the stream. */
export function createRemovalReport(deps: {
  readonly caches: Pick<Caches, 'CatalogStream' | 'Workspace'>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly log: Logger;
}): OnEventsRemoved {
  const { caches, events, log } = deps;
  return ({ tenant, queue }, left) => {
    log.warn({ tenant, queue, ...left }, MESSAGE);
    for (const { metadata } of caches.Workspace.store.byIndex('publicId', tenant)) {
      const stream = caches.CatalogStream.store.get(`${metadata.name}/${queue}`);
      if (stream === undefined) continue;
      const note = { type: 'Warning', reason: 'EventsRemoved', message: MESSAGE } as const;
      events.record({ resource: resourceOf('CatalogStream'), metadata: stream.metadata }, note);
    }
  };
}

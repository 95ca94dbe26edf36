import type { IncomingHttpHeaders } from 'node:http';
import type { EventContext } from '../../core/events/context-headers.ts';
import type { IngestItem } from './store.ts';
import { readTraceparent } from './traceparent.ts';

/** Creates the event that should be stored. The event consists of the metadata and the unchanged body. */
export function createIngestItem<Id extends string | undefined>(
  id: Id,
  { type, groupKey, forward, attributes }: EventContext,
  headers: IncomingHttpHeaders,
  body: Buffer,
): IngestItem & { readonly id: Id } {
  return {
    id,
    type,
    groupKey,
    contentType: headers['content-type'],
    traceparent: readTraceparent(headers['traceparent']),
    forward,
    ...(attributes === undefined ? {} : { attributes }),
    body,
  };
}

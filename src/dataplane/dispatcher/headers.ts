import { mayEndpointSet, mayForward } from '../../api/header-names.ts';
import { isHeaderValue } from '../../core/delivery/header-value.ts';
import { cloudEventHeaders, percentEncode } from '../../core/events/cloudevent-headers.ts';
import type { EventMeta } from '../../core/events/event-meta.ts';
import type { Sign } from './signature.ts';

const VISIBLE_ASCII = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

/**
 * The id as `webhook-id` carries it and as it is signed: verbatim, unless a header cannot carry it (ids of events in
 * structured mode may hold any character); then encoded as an attribute.
 */
export function webhookId(id: string): string {
  return VISIBLE_ASCII.test(id) ? id : percentEncode(id);
}

const ASCII = /^[\x20-\x7e]*$/;

/** Writes UTF-8 as header values are written: one character for each byte. */
function latin1OfUtf8(text: string): string {
  return ASCII.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** `(event, body, timestampMs, replayId?)` to a flat list of names and values, as undici takes them. */
export type BuildHeaders = (meta: EventMeta, body: Uint8Array, timestampMs: number, replayId?: string) => string[];

/**
 * Headers of one attempt: Standard Webhooks, those of the CloudEvent, group key and type under names of ours, `traceparent`,
 * the producer's forwarded headers and the endpoint's own, which win over forwarded ones. Reserved names are dropped from both. Make it once per
 * endpoint and keep it.
 *
 * @param version of the product, for `user-agent: sluice/<version>`
 * @param extra the endpoint's own headers, by name
 */
export function createHeaderBuilder(endpoint: {
  version: string;
  sign: Sign;
  extra?: Readonly<Record<string, string>>;
}): BuildHeaders {
  const { sign } = endpoint;
  const fixed: string[] = ['user-agent', `sluice/${endpoint.version}`];
  // Each name once, in whatever cases it was written: the last one counts.
  const own = new Map<string, string>();
  for (const [name, value] of Object.entries(endpoint.extra ?? {})) {
    if (mayEndpointSet(name) && isHeaderValue(value)) own.set(name.toLowerCase(), value);
  }
  fixed.push(...[...own].flat());
  return (meta, body, timestampMs, replayId) => {
    const id = webhookId(meta.id);
    const timestampSeconds = Math.floor(timestampMs / 1000);
    const headers = fixed.slice();
    headers.push(
      'webhook-id',
      id,
      'webhook-timestamp',
      String(timestampSeconds),
      'webhook-signature',
      sign(id, timestampSeconds, body),
      ...cloudEventHeaders(meta),
    );
    // By the names and in the form in which a producer sends them, whatever a CloudEvent says for itself.
    if (meta.type !== undefined) headers.push('x-sluice-event-type', meta.type);
    // A test event has none.
    if (meta.groupKey !== '') headers.push('x-sluice-group-key', latin1OfUtf8(meta.groupKey));
    if (meta.contentType !== undefined && isHeaderValue(meta.contentType)) {
      headers.push('content-type', meta.contentType);
    }
    if (meta.traceparent !== undefined && isHeaderValue(meta.traceparent))
      headers.push('traceparent', meta.traceparent);
    if (replayId !== undefined) headers.push('webhook-replay', replayId);
    if (meta.forward !== undefined) {
      for (const name in meta.forward) {
        const value = meta.forward[name];
        if (value === undefined || own.has(name.toLowerCase()) || !mayForward(name) || !isHeaderValue(value)) continue;
        headers.push(name, value);
      }
    }
    return headers;
  };
}

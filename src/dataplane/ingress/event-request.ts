import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

/** What routes read of a request. Fastify's requests have these fields. */
export interface KeyedRequest {
  readonly raw: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  readonly params: { readonly tenant: string };
}

/**
 * Parameters shared by all routes that accept events. These are raw request values that have not been validated yet.
 */
export interface EventParams {
  readonly tenant: string;
  readonly queue: string;
}

export interface EventRequest extends KeyedRequest {
  readonly params: EventParams;
}

/** What answers need of a reply. Fastify's replies have these fields. */
export interface EventReply {
  readonly raw: ServerResponse;
  readonly request: Pick<IncomingMessage, 'headers'>;
  /** Takes the answer away from Fastify. */
  readonly hijack: () => unknown;
}

/** The path of nearly all events: without a query, and without characters that would have to be decoded. */
const PLAIN_PATH = /^\/events\/(ten_[0-9a-hjkmnp-tv-z]{20})\/([a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?)$/;

const doNothing = () => {};

/**
 * Returns a function that serves events with a plain path without Fastify, which would cost as much as the rest of the
 * route. It returns false for all other requests. They have the same route in Fastify.
 */
export function createPlainEvents(options: {
  readonly route: (request: EventRequest, reply: EventReply) => void;
  readonly onError: (reply: EventReply, startedMs: number, error: unknown) => void;
}): (request: IncomingMessage, response: ServerResponse) => boolean {
  return (raw, response) => {
    const match = raw.method === 'POST' ? PLAIN_PATH.exec(raw.url as string) : null;
    if (match === null) return false;
    const { headers } = raw;
    const params = { tenant: match[1] as string, queue: match[2] as string };
    const reply = { raw: response, request: raw, hijack: doNothing };
    try {
      options.route({ raw, headers, params }, reply);
    } catch (error) {
      options.onError(reply, performance.now(), error);
    }
    return true;
  };
}

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';

/** The fields of a request that routes read. Fastify's requests have these fields. */
export interface KeyedRequest {
  readonly raw: IncomingMessage;
  readonly headers: IncomingHttpHeaders;
  readonly params: { readonly tenant: string };
}

/**
 * Parameters shared by all routes that accept events. The parameters are raw values of the request that have not been
 * validated yet.
 */
export interface EventParams {
  readonly tenant: string;
  readonly queue: string;
}

export interface EventRequest extends KeyedRequest {
  readonly params: EventParams;
}

/** The fields of a reply that responses need. Fastify's replies have these fields. */
export interface EventReply {
  readonly raw: ServerResponse;
  readonly request: Pick<IncomingMessage, 'headers'>;
  /** Takes the response away from Fastify. */
  readonly hijack: () => unknown;
}

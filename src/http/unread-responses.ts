import type { ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { FastifyInstance, FastifyRequest } from 'fastify';

/** Smaller responses are not counted, because the number of connections is limited as well. */
const LEAST_BYTES = 16_384;
/** The size of the buffers used to send a file. */
const FILE_BYTES = 131_072;

/** A response in memory, until its client has read it. */
interface Unread {
  readonly response: ServerResponse;
  readonly client: unknown;
  readonly bytes: number;
}

/**
 * Limits the memory used by responses that their clients do not read. Without this limit, a client could request large
 * responses on many connections until the process runs out of memory. Beyond the limit, closes connections of the client
 * that uses the most memory, starting with the response that has waited longest.
 *
 * @param options.mostBytes the maximum size of all these responses, in bytes
 * @param options.clientOf returns the client of a request
 * @param options.onClosed called for each connection that is closed
 */
export function limitUnread(
  app: FastifyInstance,
  {
    mostBytes,
    clientOf,
    onClosed,
  }: {
    readonly mostBytes: number;
    readonly clientOf: (request: FastifyRequest) => unknown;
    readonly onClosed: () => void;
  },
): void {
  /** In the order of their requests. */
  const unread = new Map<ServerResponse, Unread>();
  let total = 0;

  function forget(response: ServerResponse): void {
    total -= unread.get(response)?.bytes ?? 0;
    unread.delete(response);
  }

  function closeOne(): void {
    const byClient = new Map<unknown, number>();
    for (const { client, bytes } of unread.values()) byClient.set(client, (byClient.get(client) ?? 0) + bytes);
    const [[largest] = []] = [...byClient].toSorted(([, a], [, b]) => b - a);
    const oldest = [...unread.values()].find(({ client }) => client === largest);
    if (oldest === undefined) return;
    forget(oldest.response);
    oldest.response.req.socket.destroy();
    onClosed();
  }

  app.addHook('onSend', async (request, { raw: response }, payload) => {
    const bytes = sizeOf(payload, request.raw.socket instanceof TLSSocket);
    if (bytes < LEAST_BYTES || response.closed) return;
    // The payload of a response can be replaced after an error.
    forget(response);
    unread.set(response, { response, client: clientOf(request), bytes });
    total += bytes;
    response.once('close', () => forget(response));
    while (total > mostBytes) closeOne();
  });
}

/**
 * Returns the memory that a response uses until it is read. Responses share a buffer, so it is only counted if it is
 * encrypted for each of them.
 */
function sizeOf(payload: unknown, isEncrypted: boolean): number {
  if (typeof payload === 'string') return payload.length < LEAST_BYTES / 3 ? 0 : Buffer.byteLength(payload);
  if (Buffer.isBuffer(payload)) return isEncrypted ? payload.length : 0;
  return payload === null || payload === undefined ? 0 : FILE_BYTES;
}

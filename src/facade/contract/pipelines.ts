import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The maximum number of requests of a connection that wait for the responses to earlier requests. */
export const MOST_PIPELINED = 64;

/**
 * Creates a function that starts the requests of a connection one after the other, even if its client does not wait for
 * the responses (RFC 9112, 9.3.2). Closes the connection if too many requests are waiting.
 *
 * Node reads requests much faster than they can start. Without a limit, a client could use up the memory with a few MiB
 * of requests, before anything is known about the client.
 */
export function createPipelines(): (request: IncomingMessage, response: ServerResponse, start: () => void) => void {
  const waiting = new WeakMap<Socket, number>();
  return ({ socket }, response, start) => {
    // A response only has a socket from its turn on.
    if (response.socket !== null) return start();
    const count = waiting.get(socket) ?? 0;
    if (count >= MOST_PIPELINED) return void socket.destroy();
    waiting.set(socket, count + 1);
    response.once('socket', () => {
      waiting.set(socket, (waiting.get(socket) ?? 1) - 1);
      process.nextTick(() => {
        if (!response.closed) start();
      });
    });
  };
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The maximum number of requests of a connection that wait for the responses to earlier requests. */
export const MOST_PIPELINED = 64;
/** The maximum size of their targets and headers, in characters. */
export const MOST_PIPELINED_CHARACTERS = 65_536;

/** The requests of a connection that are waiting. */
interface Waiting {
  requests: number;
  characters: number;
}

/**
 * Creates a function that starts the requests of a connection one after the other, even if its client does not wait for
 * the responses (RFC 9112, 9.3.2). Closes the connection if too many requests are waiting, or if they use too much
 * memory.
 *
 * Node reads requests much faster than they can start. Without a limit, a client could use up the memory with a few MiB
 * of requests, before anything is known about the client.
 */
export function createPipelines(): (request: IncomingMessage, response: ServerResponse, start: () => void) => void {
  const ofSockets = new WeakMap<Socket, Waiting>();
  return (request, response, start) => {
    // A response only has a socket from its turn on.
    if (response.socket !== null) return start();
    const { socket } = request;
    const waiting = ofSockets.get(socket) ?? { requests: 0, characters: 0 };
    const characters = charactersOf(request);
    ofSockets.set(socket, waiting);
    waiting.requests++;
    waiting.characters += characters;
    if (waiting.requests > MOST_PIPELINED || waiting.characters > MOST_PIPELINED_CHARACTERS) {
      return void socket.destroy();
    }
    response.once('socket', () => {
      waiting.requests--;
      waiting.characters -= characters;
      process.nextTick(() => {
        if (!response.closed) start();
      });
    });
  };
}

function charactersOf({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length);
}

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance } from 'fastify';

/**
 * Lets a client finish its request if it is refused before its body has arrived, and the connection is closed with the
 * response. Node would close the connection at once. The kernel then resets it when more of the body arrives, and many
 * clients report that they could not send the request instead of reading the response. The rest of the body is read and
 * discarded. The timeout of the request still applies.
 */
export function closeAfterBodies(server: FastifyInstance['server']): void {
  const latest = new WeakMap<Socket, IncomingMessage>();

  function linger(socket: Socket): void {
    const close = socket.destroySoon;
    socket.destroySoon = () => {
      const request = latest.get(socket);
      if (request === undefined || request.complete) return close.call(socket);
      socket.end();
      request.once('end', () => socket.destroy());
    };
  }

  server.prependListener('request', (request: IncomingMessage) => {
    if (!latest.has(request.socket)) linger(request.socket);
    latest.set(request.socket, request);
  });
}

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

/** LastResponses closes connections after their last response. */
export interface LastResponses {
  /**
   * Called for each request. Returns false if its connection is closed after the response to an earlier request. It must
   * not be processed then, because it would not get a response (RFC 9112, 9.6).
   */
  readonly enter: (request: IncomingMessage) => boolean;
  /**
   * Returns true if the response to this request can be the last one of its connection, i.e. if no other request has
   * arrived behind it. Requests that arrive from now on are not processed.
   */
  readonly isLast: (request: IncomingMessage) => boolean;
  /** Marks the response to this request, which has `Connection: close`, as the last one of its connection. */
  readonly close: (request: IncomingMessage) => void;
}

/**
 * Lets a client finish its request if it is refused before its body has arrived, and the connection is closed with the
 * response. Node would close the connection at once. The kernel then resets it when more of the body arrives, and many
 * clients report that they could not send the request instead of reading the response. The rest of the body is read and
 * discarded. The timeout of the request still applies.
 */
export function createLastResponses(): LastResponses {
  const latest = new WeakMap<Socket, IncomingMessage>();
  const closing = new WeakSet<Socket>();

  function linger(socket: Socket): void {
    const close = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      closing.add(socket);
      const request = latest.get(socket);
      if (request === undefined || request.complete) return close();
      socket.end();
      request.once('end', () => socket.destroy());
    };
  }

  return {
    enter(request) {
      const { socket } = request;
      if (closing.has(socket)) {
        request.resume();
        return false;
      }
      if (!latest.has(socket)) linger(socket);
      latest.set(socket, request);
      return true;
    },
    isLast(request) {
      closing.add(request.socket);
      return latest.get(request.socket) === request;
    },
    close: ({ socket }) => void closing.add(socket),
  };
}

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** LastResponses closes connections after their last response. */
export interface LastResponses {
  /**
   * Called for each request. Returns false if its connection is closed after the response to an earlier request. Such a
   * request must not be processed because it would not get a response (RFC 9112, 9.6).
   */
  readonly enter: (request: IncomingMessage, response: ServerResponse) => boolean;
  /**
   * Marks the connection of this request as closing, and returns whether the response to this request is the last one,
   * i.e. no other request has arrived behind it. Requests that arrive from now on are not processed, unless the
   * response to the latest request has been sent already and keeps the connection open.
   */
  readonly closeIfLast: (request: IncomingMessage) => boolean;
  /** Marks the response to this request, which has `Connection: close`, as the last one of its connection. */
  readonly close: (request: IncomingMessage) => void;
}

interface Connection {
  /** The response to the latest request, until the request is complete and the response is sent. */
  latest: ServerResponse | undefined;
  isClosing: boolean;
}

/**
 * Lets a client finish its request if it is refused before its body has arrived, and the connection is closed with the
 * response. Node would close the connection at once. The kernel then resets it when more of the body arrives, and many
 * clients report that they could not send the request instead of reading the response. The rest of the body is read and
 * discarded, for up to `lingerMs` after the response. The same applies if the connection is kept open for the next
 * request. If it stayed open, a client could hold a connection with a few bytes until the timeout of the request.
 */
export function createLastResponses(lingerMs: number): LastResponses {
  const connections = new WeakMap<Socket, Connection>();

  function open(socket: Socket): Connection {
    const connection: Connection = { latest: undefined, isClosing: false };
    connections.set(socket, connection);
    const close = socket.destroySoon.bind(socket);
    socket.destroySoon = () => {
      connection.isClosing = true;
      const request = connection.latest?.req;
      if (request === undefined || request.complete) return close();
      socket.end();
      request.once('end', () => socket.destroy());
    };
    return connection;
  }

  /** Without this, each idle connection would keep its latest request in memory. */
  function forget(this: ServerResponse): void {
    if (!this.req.complete) linger(this.req);
    const connection = connections.get(this.req.socket);
    if (connection?.latest === this && this.req.complete) connection.latest = undefined;
  }

  function linger(request: IncomingMessage): void {
    const { socket } = request;
    const timer = setTimeout(() => {
      if (!request.complete) socket.destroy();
    }, lingerMs);
    // A client can send any number of such requests on a connection.
    const stop = () => {
      clearTimeout(timer);
      socket.off('close', stop);
    };
    request.once('end', stop);
    socket.once('close', stop);
  }

  return {
    enter(request, response) {
      const connection = connections.get(request.socket) ?? open(request.socket);
      if (connection.isClosing) {
        request.resume();
        return false;
      }
      connection.latest = response;
      response.once('close', forget);
      return true;
    },
    closeIfLast(request) {
      const connection = connections.get(request.socket);
      if (connection?.latest === undefined) return false;
      const { latest } = connection;
      if (latest.req === request || !latest.headersSent) connection.isClosing = true;
      return latest.req === request;
    },
    close({ socket }) {
      const connection = connections.get(socket);
      if (connection !== undefined) connection.isClosing = true;
    },
  };
}

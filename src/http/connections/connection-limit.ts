import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { createOccupancy } from '../../time/occupancy.ts';
import type { ConnectionAddress } from '../client-address.ts';

/** The limits of connections: those of an address, and those of all addresses. */
export const CONNECTION_LIMITS = ['address', 'total'] as const;
export type ConnectionLimit = (typeof CONNECTION_LIMITS)[number];

/** ConnectionCount counts a server's open connections. */
export interface ConnectionCount {
  /**
   * Called for each new connection. If there are too many in total, it closes the one that has waited longest for its
   * client. Returns false if the new connection should be closed because of a limit.
   */
  readonly accept: (socket: Socket) => boolean;
  /** Called for each request when its headers have arrived. */
  readonly serve: (response: ServerResponse) => void;
  readonly open: () => number;
}

/** Responses whose connections can be closed. */
const replaceable = new WeakSet<ServerResponse>();

/**
 * Marks a request that does not need its connection, for example because it will be refused later. Until the response,
 * the connection can be closed to make room for a new one, in the same way as connections that wait for their client.
 * Returns a function that removes the mark.
 */
export function markReplaceable(response: ServerResponse): () => void {
  replaceable.add(response);
  return () => void replaceable.delete(response);
}

/** An open connection. */
interface Place {
  readonly socket: Socket;
  readonly address: string | undefined;
  /** The responses that have not been sent yet. There are several if requests are pipelined. */
  readonly responses: Set<ServerResponse>;
}

/**
 * Limits a server's connections. Connections of trusted proxies are only limited in total because many clients share
 * them.
 *
 * A client must not be able to lock out others by holding connections. Therefore, a new connection takes the place of
 * one that waits for its client, either for the next request or for the rest of one. We don't distinguish them by
 * address because all connections may have the address of a proxy.
 */
export function createConnectionLimit(options: {
  /** If omitted, there is no limit by address. */
  readonly connectionOf?: ConnectionAddress | undefined;
  /** The maximum number of connections of an address. */
  readonly perAddress: number;
  /** The maximum number of connections in total. If omitted, there is no such limit. */
  readonly total?: number;
  /** Called for each connection that is closed because of a limit. */
  readonly onClosed?: (limit: ConnectionLimit) => void;
}): ConnectionCount {
  const { connectionOf, perAddress, total = Infinity, onClosed = () => undefined } = options;
  const ofAddresses = createOccupancy(perAddress);
  /** In the order of their last use: when they were opened, a request arrived, or its response was sent. */
  const places = new Map<Socket, Place>();

  function use(place: Place): void {
    if (places.delete(place.socket)) places.set(place.socket, place);
  }

  function leave({ socket, address }: Place): void {
    if (places.delete(socket) && address !== undefined) ofAddresses.leave(address);
  }

  /** Closes the connection that has waited longest for its client. Returns false if none is waiting. */
  function makeRoom(): boolean {
    for (const place of places.values()) {
      if (isProcessed(place)) continue;
      leave(place);
      place.socket.destroy();
      return true;
    }
    return false;
  }

  return {
    accept(socket) {
      const address = connectionOf?.(socket);
      if (address !== undefined && !ofAddresses.enter(address)) {
        onClosed('address');
        return false;
      }
      const place = { socket, address, responses: new Set<ServerResponse>() };
      if (places.size >= total) {
        onClosed('total');
        if (!makeRoom()) {
          if (address !== undefined) ofAddresses.leave(address);
          return false;
        }
      }
      places.set(socket, place);
      socket.once('close', () => leave(place));
      return true;
    },
    serve(response) {
      const place = places.get(acceptedSocket(response.req.socket));
      if (place === undefined) return;
      place.responses.add(response);
      use(place);
      response.once('close', () => {
        place.responses.delete(response);
        use(place);
      });
    },
    open: () => places.size,
  };
}

/** Returns true if a request has arrived, and the client waits for a response that needs the connection. */
function isProcessed({ responses }: Place): boolean {
  let isAwaited = false;
  for (const response of responses) {
    if (replaceable.has(response)) return false;
    isAwaited ||= response.req.complete && !response.writableEnded;
  }
  return isAwaited;
}

/** Returns the socket that was accepted. If a connection uses TLS, its requests have another one, which wraps it. */
const acceptedSocket = (socket: Socket & { _parent?: Socket | null }) => socket['_parent'] ?? socket;

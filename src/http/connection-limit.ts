import type { Socket } from 'node:net';
import { createOccupancy } from '../time/occupancy.ts';
import type { ConnectionAddress } from './client-address.ts';

/** The limits of connections: those of an address, and those of all addresses. */
export const CONNECTION_LIMITS = ['address', 'total'] as const;
export type ConnectionLimit = (typeof CONNECTION_LIMITS)[number];

/** ConnectionCount counts the open connections of a server. */
export interface ConnectionCount {
  /** Called for each new connection. Returns false if it should be closed because of a limit. */
  readonly accept: (socket: Socket) => boolean;
  readonly open: () => number;
}

/**
 * Limits the connections of a server. Those of trusted proxies are only limited in total because they are shared by many
 * clients.
 */
export function createConnectionLimit(options: {
  /** If omitted, there is no limit by address. */
  readonly connectionOf?: ConnectionAddress | undefined;
  /** The maximum number of connections of an address. */
  readonly perAddress: number;
  /** The maximum number of connections in total. If omitted, there is no such limit. */
  readonly total?: number;
  readonly onRefused?: (limit: ConnectionLimit) => void;
}): ConnectionCount {
  const { connectionOf, perAddress, total = Infinity, onRefused } = options;
  const ofAddresses = createOccupancy(perAddress);
  let open = 0;

  function refuse(limit: ConnectionLimit): false {
    onRefused?.(limit);
    return false;
  }

  return {
    accept(socket) {
      const address = connectionOf?.(socket);
      if (address !== undefined && !ofAddresses.enter(address)) return refuse('address');
      if (open >= total) {
        if (address !== undefined) ofAddresses.leave(address);
        return refuse('total');
      }
      open++;
      socket.once('close', () => {
        open--;
        if (address !== undefined) ofAddresses.leave(address);
      });
      return true;
    },
    open: () => open,
  };
}

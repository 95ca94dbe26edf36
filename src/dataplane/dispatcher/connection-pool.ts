import type { Socket } from 'node:net';
import type { SecureContext } from 'node:tls';
import { Client } from 'undici';
import type { NetworkPolicy } from '../../core/delivery/network.ts';
import { type ConnectTarget, createConnector, type TlsSession } from './connector.ts';
import type { ResolveName } from './name-lookup.ts';

/** Connection is a keep-alive connection. It uses an undici client that runs only one request at a time. */
export interface Connection {
  readonly client: Client;
  readonly origin: Origin;
  idle: boolean;
  giveUpConnecting: () => void;
  /** The socket. It is only set while the connection is open. */
  socket: Socket | undefined;
  /** The limit for the bytes received over the lifetime of the connection. If it is exceeded, `onOverrun` is called. */
  readUntil: number;
  onOverrun: () => void;
}

export interface Origin {
  readonly url: string;
  readonly target: ConnectTarget;
  readonly session: TlsSession;
  readonly idle: Connection[];
}

/**
 * Creates the origin of a URL that was already checked. The caller should keep the object because the connections share
 * its state.
 */
export function createOrigin(url: URL): Origin {
  const tls = url.protocol === 'https:';
  const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
  return { url: url.origin, target: { hostname, port, tls }, session: {}, idle: [] };
}

export interface ConnectionPool {
  /**
   * Returns the connection that was used last, or creates a new one. It does not wait, and only the caller limits the
   * number of connections.
   */
  readonly take: (origin: Origin) => Connection;
  /**
   * Returns a connection to the pool after its answer has ended normally. If the request is still being sent, the
   * connection is closed instead.
   */
  readonly give: (connection: Connection) => void;
  /** Closes a connection. Any data that arrives later is not part of a request. */
  readonly drop: (connection: Connection) => void;
  readonly close: () => Promise<void>;
}

/**
 * Creates a pool that keeps the connections by origin, with a separate client for each connection. We measured that it
 * uses a tenth less CPU for each attempt than undici's `Pool`. The connection that was used last is taken first so that
 * the surplus connections become idle and are closed. Idle connections are closed after `idleTimeoutMs`, or 2 s before
 * the time in the server's `Keep-Alive` hint. This is shorter than the timeout of most servers. A request that is sent
 * on a closing connection is a failed attempt because it is not repeated automatically.
 */
export function createConnectionPool(options: {
  policy: NetworkPolicy;
  connectTimeoutMs: number;
  idleTimeoutMs: number;
  maxHeaderBytes: number;
  secureContext: SecureContext;
  resolveName?: ResolveName;
}): ConnectionPool {
  const connect = createConnector(options);
  const connections = new Set<Connection>();

  const drop = (connection: Connection) => {
    if (!connections.delete(connection)) return;
    if (connection.idle) {
      const at = connection.origin.idle.indexOf(connection);
      if (at >= 0) connection.origin.idle.splice(at, 1);
      connection.idle = false;
    }
    // Destroy the client later because this function is usually called from the client's callbacks.
    queueMicrotask(() => {
      void connection.client.destroy();
      connection.giveUpConnecting();
    });
  };

  const openConnection = (origin: Origin): Connection => {
    const client = new Client(origin.url, {
      allowH2: false,
      pipelining: 1,
      // The attempt uses a single timer for all phases.
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: options.idleTimeoutMs,
      keepAliveMaxTimeout: 60_000,
      maxHeaderSize: options.maxHeaderBytes,
      connect: (_target, done) => {
        connection.giveUpConnecting = connect(origin.target, origin.session, (error, socket) => {
          connection.giveUpConnecting = () => {};
          if (error !== null) return done(error, null);
          if (socket === null) return;
          connection.socket = socket;
          // This listener must run before the listener of the HTTP client. It stops data that the client would parse
          // without a limit, such as reason phrases, chunk extensions and informational responses.
          socket.on('readable', () => {
            if (socket.bytesRead > connection.readUntil) connection.onOverrun();
          });
          done(null, socket);
        });
      },
    });
    const connection: Connection = {
      client,
      origin,
      idle: false,
      giveUpConnecting: () => {},
      socket: undefined,
      readUntil: Number.POSITIVE_INFINITY,
      onOverrun: () => {},
    };
    connections.add(connection);
    client.on('disconnect', () => {
      if (connection.idle) drop(connection);
    });
    return connection;
  };

  return {
    take(origin) {
      const connection = origin.idle.pop();
      if (connection === undefined) return openConnection(origin);
      connection.idle = false;
      return connection;
    },
    give(connection) {
      if (!connections.has(connection)) return;
      // The answer arrived before the request was sent. A server that did not read the request will close the
      // connection.
      if ((connection.socket?.writableLength ?? 0) > 0) return drop(connection);
      connection.idle = true;
      connection.origin.idle.push(connection);
    },
    drop,
    async close() {
      const open = [...connections];
      for (const connection of open) drop(connection);
      await Promise.all(open.map(connection => connection.client.destroy()));
    },
  };
}

import type { SecureContext } from 'node:tls';
import type { NetworkPolicy } from '../../../core/delivery/network.ts';
import { type Connection, createConnection, type ExchangeFailure } from './connection.ts';
import { type ConnectTarget, createConnector, type TlsSession } from './connector.ts';
import type { ResolveName } from './name-lookup.ts';

export interface Origin {
  readonly target: ConnectTarget;
  readonly session: TlsSession;
  readonly idle: PooledConnection[];
  /** The number of connections that opened too late for their attempt, and were lost before they were used. */
  lostUnused: number;
  /** Until this time of the monotonic clock, connections aren't used again, see `CLOSES_MS`. */
  closesUntilMs: number;
}

export interface PooledConnection extends Pick<Connection, 'send'> {
  readonly origin: Origin;
}

/**
 * Creates the origin of a URL. The URL must have been checked before. Callers should hold on to the returned object:
 * its state is shared between connections.
 */
export function createOrigin(url: URL): Origin {
  const tls = url.protocol === 'https:';
  const hostname = url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
  const port = url.port === '' ? (tls ? 443 : 80) : Number(url.port);
  return { target: { hostname, port, tls }, session: {}, idle: [], lostUnused: 0, closesUntilMs: 0 };
}

export interface ConnectionPool {
  /**
   * Returns the connection that was used most recently. If there is none, a new one is created. Never waits; limiting
   * the number of connections is up to the caller.
   */
  readonly take: (origin: Origin) => PooledConnection;
  /**
   * When a response has ended normally, this returns the connection to the pool. If it is not possible to use it again,
   * the connection is closed.
   */
  readonly give: (connection: PooledConnection) => void;
  /** Returns a connection to the pool which opened too late for its attempt. */
  readonly giveUnused: (connection: PooledConnection) => void;
  /** Closes a connection. Data arriving after this point does not belong to any request. */
  readonly drop: (connection: PooledConnection) => void;
  /**
   * Closes a connection whose request has no response yet. Bytes of the request that the kernel has not sent are
   * discarded.
   */
  readonly reset: (connection: PooledConnection) => void;
  /** Closes all of the connections. Current requests end as `aborted`. */
  readonly close: () => void;
}

/**
 * The maximum number of idle connections. With TLS, each of them takes about 60 KB. If there are more, those that have
 * been idle for the longest time are closed.
 */
const IDLE_CONNECTIONS = 1_024;
/**
 * The time that a server may take to close a connection after its last response. The side that closes a connection
 * first can't use its port again for a minute. For an endpoint that closes each connection, we would otherwise run out
 * of ports.
 */
const LEAVE_MS = 1_000;

/**
 * The maximum time for which a connection is used. Without this limit, a busy endpoint would keep its address after its
 * name has another one.
 */
const CONNECTION_MS = 60_000;
/**
 * Some servers close the connection after each response without announcing it. A request that is sent in this moment is
 * lost. If a server closes a connection within this time after a response, the pool uses no connection of this origin a
 * second time for a minute.
 */
const CLOSED_WITHIN_MS = 100;
const CLOSES_MS = 60_000;
/** Failures that do not mean that the server has closed the connection. */
const CLOSED_BY_US: ReadonlySet<ExchangeFailure> = new Set(['aborted', 'headers_too_large', 'invalid_response']);

interface Entry extends PooledConnection {
  readonly connection: Connection;
  readonly openedMs: number;
  /** The time at which the last response ended, on the monotonic clock. */
  givenMs: number;
  /** When the connection is closed if it is idle, on the monotonic clock. */
  idleUntilMs: number;
  isUnused: boolean;
}

/**
 * Creates a pool for connections, which are grouped by their origin. We always pick the most recently used connection
 * so that surplus ones go idle and can be closed. An idle connection is closed after `idleTimeoutMs`, which is shorter
 * than the timeout of most servers, or 2 s before the time in the server's `Keep-Alive` hint. A request that was sent
 * on a connection that is being closed is a failed attempt, because requests are not repeated automatically.
 */
export function createConnectionPool(options: {
  policy: NetworkPolicy;
  connectTimeoutMs: number;
  idleTimeoutMs: number;
  secureContext: SecureContext;
  resolveName?: ResolveName;
  idleConnections?: number;
  connectionMs?: number;
  leaveMs?: number;
  closedWithinMs?: number;
}): ConnectionPool {
  const { idleConnections = IDLE_CONNECTIONS, connectionMs = CONNECTION_MS } = options;
  const { leaveMs = LEAVE_MS, closedWithinMs = CLOSED_WITHIN_MS } = options;
  const connect = createConnector(options);
  const entries = new Set<Entry>();
  /** The idle connections, in the order in which they became idle. */
  const idle = new Set<Entry>();
  /** The connections that the server is about to close. */
  const leaving = new Set<Connection>();
  let closing: NodeJS.Timeout | undefined;
  let closingAtMs = Number.POSITIVE_INFINITY;

  const forget = (entry: Entry) => {
    entries.delete(entry);
    if (!idle.delete(entry)) return;
    const at = entry.origin.idle.indexOf(entry);
    if (at >= 0) entry.origin.idle.splice(at, 1);
  };
  const drop = (dropped: PooledConnection) => {
    const entry = dropped as Entry;
    forget(entry);
    entry.connection.destroy();
  };

  /** Waits until the server closes the connection, unless we already wait for too many. */
  const leave = (entry: Entry) => {
    const { connection } = entry;
    if (leaving.size >= idleConnections) return drop(entry);
    forget(entry);
    leaving.add(connection);
    connection.leave(leaveMs, () => leaving.delete(connection));
  };

  /** We use a single timer for all connections, because most of them are used again a long time before it fires. */
  const closeAt = (ms: number) => {
    if (ms >= closingAtMs) return;
    clearTimeout(closing);
    closingAtMs = ms;
    closing = setTimeout(closeIdle, Math.max(1, Math.ceil(ms - performance.now()))).unref();
  };
  const closeIdle = () => {
    closingAtMs = Number.POSITIVE_INFINITY;
    const nowMs = performance.now();
    let nextMs = Number.POSITIVE_INFINITY;
    for (const entry of idle) {
      if (entry.idleUntilMs <= nowMs) drop(entry);
      else nextMs = Math.min(nextMs, entry.idleUntilMs);
    }
    if (nextMs < Number.POSITIVE_INFINITY) closeAt(nextMs);
  };

  const add = (origin: Origin): Entry => {
    const connection = createConnection(connect, origin, reason => {
      const nowMs = performance.now();
      const isRecent = nowMs - entry.givenMs < closedWithinMs;
      if (entry.isUnused) origin.lostUnused++;
      else if (isRecent && !CLOSED_BY_US.has(reason)) origin.closesUntilMs = nowMs + CLOSES_MS;
      forget(entry);
    });
    const { send } = connection;
    const openedMs = performance.now();
    const entry: Entry = { connection, origin, openedMs, givenMs: -CLOSES_MS, idleUntilMs: 0, isUnused: false, send };
    entries.add(entry);
    return entry;
  };

  const closesAtOnce = ({ isUnused, origin }: Entry, nowMs: number) => !isUnused && nowMs < origin.closesUntilMs;

  const give = (given: PooledConnection) => {
    const entry = given as Entry;
    if (!entries.has(entry)) return;
    const idleMs = entry.connection.idleMs() ?? options.idleTimeoutMs;
    const nowMs = performance.now();
    const idleUntilMs = nowMs + idleMs;
    entry.idleUntilMs = entry.isUnused ? idleUntilMs : Math.min(idleUntilMs, entry.openedMs + connectionMs);
    if (idleMs === 0 || closesAtOnce(entry, nowMs)) return leave(entry);
    if (entry.idleUntilMs <= nowMs) return drop(entry);
    entry.givenMs = nowMs;
    entry.origin.idle.push(entry);
    idle.add(entry);
    closeAt(entry.idleUntilMs);
    if (idle.size > idleConnections) drop(idle.values().next().value as Entry);
  };

  return {
    take(origin) {
      for (;;) {
        const entry = origin.idle.pop() as Entry | undefined;
        if (entry === undefined) return add(origin);
        const nowMs = performance.now();
        const isUsable = entry.idleUntilMs > nowMs && !closesAtOnce(entry, nowMs);
        idle.delete(entry);
        entry.isUnused = false;
        if (isUsable) return entry;
        drop(entry);
      }
    },
    give,
    giveUnused(given) {
      (given as Entry).isUnused = true;
      give(given);
    },
    drop,
    reset(given) {
      const entry = given as Entry;
      forget(entry);
      entry.connection.reset();
    },
    close() {
      clearTimeout(closing);
      for (const { connection } of entries) connection.abort();
      for (const connection of leaving) connection.destroy();
    },
  };
}

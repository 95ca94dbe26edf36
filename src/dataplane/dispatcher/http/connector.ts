import { isIP, type Socket } from 'node:net';
import { type SecureContext, connect as tlsConnect } from 'node:tls';
import type { NetworkPolicy } from '../../../core/delivery/network.ts';
import { connectToFirst } from './first-address.ts';
import { createNameLookup, type ResolveName } from './name-lookup.ts';

/** The reason for a connection failure. The results of attempts contain the same values. */
export type ConnectFailure =
  | 'address_refused'
  | 'dns_failed'
  | 'connection_refused'
  | 'unreachable'
  | 'connect_timeout'
  | 'tls_error'
  | 'connect_failed';

export class ConnectError extends Error {
  readonly code = 'SLUICE_CONNECT';
  readonly reason: ConnectFailure;

  constructor(reason: ConnectFailure, cause?: unknown) {
    super(reason, { cause });
    this.name = 'ConnectError';
    this.reason = reason;
  }
}

export interface ConnectTarget {
  /** The name of the host (without brackets). */
  readonly hostname: string;
  readonly port: number;
  readonly tls: boolean;
}

/**
 * Opens a connection and then calls `done`, exactly once. `transport` is the TCP connection, which is below `socket` if
 * TLS is used. Calling the returned function cancels the connection and destroys any sockets.
 */
export type Connect = (
  target: ConnectTarget,
  session: TlsSession,
  done: (error: ConnectError | null, socket: Socket | null, transport?: Socket) => void,
) => () => void;

/**
 * TlsSession holds the last TLS session for an origin, so we can resume it on the next connection (much cheaper than a
 * full handshake).
 */
export interface TlsSession {
  ticket?: Buffer;
  /** Until when it can be resumed, using the wall clock. The certificate is only checked by a full handshake. */
  untilMs?: number;
}

/** The maximum time after which a certificate is re-checked. */
const CHECKED_MS = 60 * 60_000;

/**
 * The maximum number of secrets and session tickets of a connection. A handshake creates up to five secrets, and
 * servers usually send up to four tickets. Each key update creates another secret. Each of these messages takes 10 to
 * 20 µs. They contain no data, so nothing else limits them.
 */
const TLS_MESSAGES_MAX = 64;

const REASON_BY_CODE: Readonly<Record<string, ConnectFailure>> = {
  ERR_IP_BLOCKED: 'address_refused',
  SLUICE_ADDRESS_REFUSED: 'address_refused',
  ENOTFOUND: 'dns_failed',
  EAI_AGAIN: 'dns_failed',
  EAI_FAIL: 'dns_failed',
  ENODATA: 'dns_failed',
  ECONNREFUSED: 'connection_refused',
  EHOSTUNREACH: 'unreachable',
  ENETUNREACH: 'unreachable',
  EADDRNOTAVAIL: 'unreachable',
  ETIMEDOUT: 'connect_timeout',
};

function reasonOf(error: unknown): ConnectFailure {
  if (error instanceof ConnectError) return error.reason;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return (typeof code === 'string' ? REASON_BY_CODE[code] : undefined) ?? 'connect_failed';
}

/**
 * Creates a connector that opens a TCP connection before starting TLS on top. We need two steps for this, because
 * `tls.connect` does not support a block list. The socket checks the block list against the address that it actually
 * connects to. This covers every spelling of an address, every DNS answer, and names that resolve differently the
 * second time. Addresses that are refused are also removed during the lookup, so that it is still possible to use a
 * name if it has other addresses.
 *
 * @param connectTimeoutMs limit for name lookup, TCP, and TLS together
 */
export function createConnector(options: {
  policy: NetworkPolicy;
  connectTimeoutMs: number;
  secureContext: SecureContext;
  resolveName?: ResolveName;
}): Connect {
  const { policy, connectTimeoutMs, secureContext } = options;
  const lookup = createNameLookup(policy, options.resolveName);

  return (target, session, done) => {
    let settled = false;
    let tcp: Socket | undefined;
    let cancel = () => {};
    const latestMs = performance.now() + connectTimeoutMs;
    const finish = (error: unknown, socket: Socket | null, reason = error === null ? undefined : reasonOf(error)) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      if (reason === undefined) return done(null, socket, tcp);
      cancel();
      tcp?.destroy();
      done(error instanceof ConnectError ? error : new ConnectError(reason, error), null);
    };
    const timer = setTimeout(() => finish(new ConnectError('connect_timeout'), null), connectTimeoutMs);

    /** If the process was suspended, the connection may be reported as open before the timer fires. */
    const finishOpen = (socket: Socket) => {
      if (performance.now() > latestMs) finish(new ConnectError('connect_timeout'), null);
      else finish(null, socket);
    };

    const { hostname, port } = target;
    const route = { hostname, port, sharesBuffer: !target.tls, lookup, refused: policy.refused };
    cancel = connectToFirst(route, (failure, opened) => {
      if (opened === null) return finish(failure, null);
      tcp = opened;
      // Don't remove this listener: without it, a TCP socket error after the TLS handshake would end the process.
      tcp.on('error', error => finish(error, null));
      if (!target.tls) return finishOpen(tcp);
      const tls = tlsConnect({
        socket: tcp,
        secureContext,
        // The certificate is checked using `host`. SNI only supports names, without a final dot (RFC 6066, 3).
        host: hostname,
        ...(isIP(hostname) === 0 ? { servername: hostname.replace(/\.$/, '') } : {}),
        ...(session.ticket !== undefined && Date.now() < (session.untilMs ?? 0) ? { session: session.ticket } : {}),
        ALPNProtocols: ['http/1.1'],
      });
      let messages = 0;
      const countMessage = () => {
        const code = 'ERR_SSL_TOO_MANY_MESSAGES';
        if (++messages > TLS_MESSAGES_MAX) tls.destroy(Object.assign(new Error(code), { code }));
      };
      // There is no event for key updates, but for the secrets they create.
      tls.on('keylog', countMessage);
      tls.on('session', ticket => {
        session.ticket = ticket;
        countMessage();
      });
      tls.on('error', error => finish(error, null, 'tls_error'));
      tls.once('secureConnect', () => {
        if (!tls.isSessionReused()) {
          session.untilMs = Math.min(Date.now() + CHECKED_MS, Date.parse(tls.getPeerCertificate().valid_to));
        }
        finishOpen(tls);
      });
    });
    return () => finish(new ConnectError('connect_failed'), null);
  };
}

import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { type AnswerEvents, createAnswerReader } from './answer-reader.ts';
import type { Connect, ConnectFailure, ConnectTarget, TlsSession } from './connector.ts';

/** Requests up to this size are copied into a single buffer, which costs less than writing two. */
const JOINED_MAX = 16 * 1024;
/** The buffer of all connections that are not encrypted. */
let shared = Buffer.allocUnsafeSlow(JOINED_MAX);

/** The reason why there is no complete response to a request. */
export type ExchangeFailure =
  | ConnectFailure
  | 'connection_reset'
  | 'network_error'
  | 'invalid_response'
  | 'headers_too_large'
  | 'aborted';

/**
 * A request, and the functions that are called for its response. The last call is always either `onEnd`, `onFailure`,
 * or `onUnsent`, unless the connection was destroyed.
 */
export interface Exchange extends AnswerEvents {
  /** The head of the request, which has a single character for each byte. */
  readonly head: string;
  readonly body: Buffer;
  /**
   * Called when a connection that was opened for this request is open. Returns whether the request may still be sent.
   */
  readonly maySend: () => boolean;
  /** Called when the request is written to the open connection. */
  readonly onSent: () => void;
  /** Called instead of all others if the request may no longer be sent. The connection is open and can be used. */
  readonly onUnsent: () => void;
  readonly onEnd: () => void;
  readonly onFailure: (reason: ExchangeFailure) => void;
}

/** Connection is an HTTP/1.1 connection that carries a single request at a time. */
export interface Connection {
  /** Starts a new request. If the connection is new, it is opened first. The previous request must have ended. */
  readonly send: (exchange: Exchange) => void;
  /**
   * Returns the time for which the connection can be idle after the response, in milliseconds. If it is not possible to
   * use the connection again, this is 0. If the server has not specified this, it is `undefined`.
   */
  readonly idleMs: () => number | undefined;
  /**
   * Lets the server close the connection after a response. Closes it after this time, or at once if the request was not
   * sent completely. Calls `onClosed` when it is closed.
   */
  readonly leave: (ms: number, onClosed: () => void) => void;
  /** Closes the connection. The functions of the current request are not called. */
  readonly destroy: () => void;
  /** Does the same and discards what the kernel has not sent of the request. The server sees a reset. */
  readonly reset: () => void;
  /** Closes the connection. The current request will end as `aborted`. */
  readonly abort: () => void;
}

const RESETS = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT']);

function failureOf(error: NodeJS.ErrnoException): ExchangeFailure {
  // With TLS 1.3, a server can only refuse the client after the client has completed the handshake.
  if (error.code?.startsWith('ERR_SSL_')) return 'tls_error';
  return error.code !== undefined && RESETS.has(error.code) ? 'connection_reset' : 'network_error';
}

function write(socket: Socket, { head, body }: Exchange): void {
  const bytes = head.length + body.length;
  if (bytes > JOINED_MAX) {
    socket.cork();
    socket.write(head, 'latin1');
    socket.write(body);
    socket.uncork();
    return;
  }
  // TLS encrypts the bytes later. Without TLS, the kernel usually takes all of them at once.
  const isShared = !(socket instanceof TLSSocket);
  const request = isShared ? shared.subarray(0, bytes) : Buffer.allocUnsafe(bytes);
  request.write(head, 'latin1');
  request.set(body, head.length);
  socket.write(request);
  if (isShared && socket.writableLength > 0) shared = Buffer.allocUnsafeSlow(JOINED_MAX);
}

/**
 * Creates a connection. The first request opens the connection. We never repeat a request, because a server that has
 * closed the connection may have processed it.
 *
 * @param onLost this is called once if the connection has failed or was closed by the server, even if there is no
 *   request. Not called after `destroy`
 */
export function createConnection(
  connect: Connect,
  { target, session }: { readonly target: ConnectTarget; readonly session: TlsSession },
  onLost: (reason: ExchangeFailure) => void,
): Connection {
  const reader = createAnswerReader();
  let socket: Socket | undefined;
  let transport: Socket | undefined;
  let current: Exchange | undefined;
  let giveUpConnecting = () => {};
  let isOver = false;
  let isAnswered = false;
  let isUsable = true;
  let isUsed = false;

  const fail = (reason: ExchangeFailure) => {
    if (isOver) return;
    const failed = current;
    destroy();
    onLost(reason);
    failed?.onFailure(reason);
  };
  const destroy = () => {
    isOver = true;
    isUsable = false;
    current = undefined;
    giveUpConnecting();
    socket?.destroy();
  };
  const end = () => {
    if (isOver) return;
    const ended = current;
    current = undefined;
    isAnswered = false;
    ended?.onEnd();
    if (!isUsable) fail('connection_reset');
  };
  const onData = (bytes: Buffer) => {
    // No request is running, so these bytes don't belong to any response.
    if (current === undefined) return fail('invalid_response');
    if (isAnswered) {
      isUsable = false;
      return;
    }
    const progress = reader.read(bytes);
    // One of the callbacks may have destroyed the connection.
    if (isOver || progress === 'more') return;
    if (progress !== 'end') return fail(progress);
    isAnswered = true;
    // Some servers will close the connection after a response even if they have not sent `Connection: close`. We need
    // to wait until the event loop has read everything that was received together with the response.
    setImmediate(end);
  };
  const onClosed = () => {
    isUsable = false;
    if (isOver || isAnswered) return;
    if (current !== undefined && reader.finish()) end();
    else fail('connection_reset');
  };
  const start = (open: Socket, exchange: Exchange) => {
    isUsed = true;
    reader.begin(exchange);
    exchange.onSent();
    write(open, exchange);
  };

  const open = () => {
    giveUpConnecting = connect(target, session, (refused, opened, below) => {
      giveUpConnecting = () => {};
      if (opened === null) return fail(refused?.reason ?? 'connect_failed');
      if (isOver) return void opened.destroy();
      socket = opened;
      transport = below;
      opened.on('data', onData);
      opened.on('error', (error: Error) => (isAnswered ? onClosed() : fail(failureOf(error))));
      opened.on('end', onClosed);
      opened.on('close', onClosed);
      if (current === undefined) return;
      if (current.maySend()) return start(opened, current);
      const { onUnsent } = current;
      current = undefined;
      onUnsent();
    });
  };

  return {
    send(exchange) {
      current = exchange;
      if (socket === undefined) open();
      else start(socket, exchange);
    },
    // If the request isn't fully sent yet, the server responded early and will close the connection.
    idleMs() {
      if (!isUsable || (socket?.writableLength ?? 0) > 0) return 0;
      return isUsed ? reader.idleMs() : undefined;
    },
    leave(ms, onClosed) {
      const isComplete = isUsable && socket?.writableLength === 0;
      if (socket === undefined || !isComplete) {
        destroy();
        return onClosed();
      }
      isOver = true;
      const timer = setTimeout(destroy, ms).unref();
      socket.once('data', destroy);
      socket.once('close', () => {
        clearTimeout(timer);
        onClosed();
      });
    },
    destroy,
    reset() {
      // TLS has encrypted and written everything by now, so there is nothing else to discard.
      transport?.resetAndDestroy();
      destroy();
    },
    abort: () => fail('aborted'),
  };
}

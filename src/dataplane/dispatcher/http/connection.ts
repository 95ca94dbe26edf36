import type { Socket } from 'node:net';
import { type AnswerEvents, createAnswerReader } from './answer-reader.ts';
import type { Connect, ConnectFailure, ConnectTarget, TlsSession } from './connector.ts';

/** Requests up to this size are copied into a single buffer, which costs less than writing two. */
const JOINED_MAX = 16 * 1024;

/** Reason why a request has no complete answer. */
export type ExchangeFailure =
  | ConnectFailure
  | 'connection_reset'
  | 'network_error'
  | 'invalid_response'
  | 'headers_too_large'
  | 'aborted';

/** A request with callbacks for its answer. Either `onEnd` or `onFailure` is called last, unless the connection is destroyed. */
export interface Exchange extends AnswerEvents {
  /** Head of the request, one character per byte. */
  readonly head: string;
  readonly body: Buffer;
  /** Called when the request is written to the open connection. */
  readonly onSent: () => void;
  readonly onEnd: () => void;
  readonly onFailure: (reason: ExchangeFailure) => void;
}

/** Connection is an HTTP/1.1 connection that carries a single request at a time. */
export interface Connection {
  /** Starts a request, and opens the connection if it is new. The previous request must have ended. */
  readonly send: (exchange: Exchange) => void;
  /**
   * Returns how long the connection may stay idle after the answer, in milliseconds. 0 if it can't be used again,
   * `undefined` if the server doesn't say.
   */
  readonly idleMs: () => number | undefined;
  /** Closes the connection without calling the current request. */
  readonly destroy: () => void;
  /** Closes the connection. The current request ends as `aborted`. */
  readonly abort: () => void;
}

const RESETS = new Set(['ECONNRESET', 'EPIPE', 'ETIMEDOUT']);

function failureOf(error: NodeJS.ErrnoException): ExchangeFailure {
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
  const request = Buffer.allocUnsafe(bytes);
  request.write(head, 'latin1');
  body.copy(request, head.length);
  socket.write(request);
}

/**
 * Creates a connection, which opens with its first request. Requests are never repeated, because a server that has closed
 * the connection may have processed them.
 *
 * @param onLost called once when the connection fails or is closed by the server, with or without a request. Not called
 * after `destroy`
 */
export function createConnection(
  connect: Connect,
  { target, session }: { readonly target: ConnectTarget; readonly session: TlsSession },
  onLost: () => void,
): Connection {
  const reader = createAnswerReader();
  let socket: Socket | undefined;
  let current: Exchange | undefined;
  let giveUpConnecting = () => {};
  let isOver = false;
  let isAnswered = false;
  let isUsable = true;

  const fail = (reason: ExchangeFailure) => {
    if (isOver) return;
    const failed = current;
    destroy();
    onLost();
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
    // No request is running, so these bytes don't belong to any answer.
    if (current === undefined) return fail('invalid_response');
    if (isAnswered) {
      isUsable = false;
      return;
    }
    const progress = reader.read(bytes);
    // The callbacks may have destroyed the connection.
    if (isOver || progress === 'more') return;
    if (progress !== 'end') return fail(progress);
    isAnswered = true;
    // Some servers close the connection after an answer without a `Connection: close`. Wait until the event loop has
    // read everything that arrived with the answer.
    setImmediate(end);
  };
  const onClosed = () => {
    isUsable = false;
    if (isOver || isAnswered) return;
    if (current !== undefined && reader.finish()) end();
    else fail('connection_reset');
  };
  const start = (open: Socket, exchange: Exchange) => {
    reader.begin(exchange);
    exchange.onSent();
    write(open, exchange);
  };

  const open = () => {
    giveUpConnecting = connect(target, session, (refused, opened) => {
      giveUpConnecting = () => {};
      if (opened === null) return fail(refused?.reason ?? 'connect_failed');
      if (isOver) return void opened.destroy();
      socket = opened;
      opened.on('data', onData);
      opened.on('error', (error: Error) => (isAnswered ? onClosed() : fail(failureOf(error))));
      opened.on('end', onClosed);
      opened.on('close', onClosed);
      if (current !== undefined) start(opened, current);
    });
  };

  return {
    send(exchange) {
      current = exchange;
      if (socket === undefined) open();
      else start(socket, exchange);
    },
    // If the request isn't fully sent yet, the server answered early and will close the connection.
    idleMs: () => (isUsable && (socket?.writableLength ?? 0) === 0 ? reader.idleMs() : 0),
    destroy,
    abort: () => fail('aborted'),
  };
}

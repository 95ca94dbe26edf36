import type { Socket } from 'node:net';
import { PROBLEM_CONTENT_TYPE, problem } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

interface Refusal {
  readonly code: ProblemCode;
  /**
   * A literal, because importing it from node:http would load all of the lazy parts, including the bundled fetch
   * client.
   */
  readonly reason: string;
}

/** Maps codes of Node's HTTP parser to problems. Any other code is treated as a malformed request. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', reason: 'Request Header Fields Too Large' },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', reason: 'Request Timeout' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { code: 'body_too_large', reason: 'Content Too Large' },
};
const MALFORMED: Refusal = { code: 'malformed_request', reason: 'Bad Request' };

/** Error codes for which no response can be sent, because the connection was lost or its TLS handshake has failed. */
const UNANSWERABLE = /^(ECONNRESET|EPROTO|ERR_(SSL|TLS)_.*)$/;

/**
 * The response in progress, which Node stores on the socket. Not part of the types, but Node's own handler accesses it
 * in the same way.
 */
type HttpSocket = Socket & {
  _httpMessage?: {
    headersSent: boolean;
    req?: { complete: boolean };
    once: (event: 'close', act: () => void) => void;
  } | null;
};

/** Connections with an error that is waiting for the responses to earlier requests. */
const waiting = new WeakSet<Socket>();

/** Connections that are closing after their response, and the bytes received before it. */
const lingering = new WeakMap<Socket, number>();

/** The maximum number of bytes that are read and discarded after a response. */
export const LINGER_BYTES = 16 * 1024 * 1024;

/** The maximum number of connections that are closed in each iteration of the event loop because of a timeout. */
export const MOST_TIMED_OUT = 16;

/**
 * Creates the function that responds to invalid HTTP, and to requests that did not arrive in time.
 *
 * Node looks for timeouts every few seconds, and reports all of them at once. A client that keeps thousands of
 * incomplete requests open would otherwise block the process for several hundred milliseconds.
 */
export function createProtocolErrors(
  count: (status: number) => void,
  lingerMs: number,
): (error: NodeJS.ErrnoException, socket: Socket) => void {
  const timedOut: { readonly error: NodeJS.ErrnoException; readonly socket: Socket }[] = [];
  function closeNext(): void {
    for (const { error, socket } of timedOut.splice(0, MOST_TIMED_OUT)) answerProtocolError(error, socket, count, 0);
    if (timedOut.length > 0) setImmediate(closeNext);
  }
  return (error, socket) => {
    if (error.code !== 'ERR_HTTP_REQUEST_TIMEOUT') return answerProtocolError(error, socket, count, lingerMs);
    // The rest of the request must not arrive until then.
    socket.pause();
    if (timedOut.push({ error, socket }) === 1) setImmediate(closeNext);
  };
}

/**
 * Responds to invalid HTTP with a problem document and closes the connection when the client has closed it, or after
 * `lingerMs`. Until then, everything that arrives is discarded. If it were not read, the kernel would reset the
 * connection. Many clients would then report that they could not send the request, without reading the response.
 * Earlier requests on this connection get their responses first. Nothing is written if the response to the invalid
 * request has already been started. Connections on which nothing was received are closed without a response because
 * clients would take it for that of the first request.
 */
function answerProtocolError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  count: (status: number) => void,
  lingerMs: number,
): void {
  const before = lingering.get(socket);
  // There is another error for each chunk that arrives after the response, and for the end.
  if (before !== undefined && !UNANSWERABLE.test(error.code ?? '')) {
    if (socket.readableEnded || socket.bytesRead - before > LINGER_BYTES) socket.destroy();
    return;
  }
  const inProgress = (socket as HttpSocket)['_httpMessage'] ?? undefined;
  const owesEarlier = inProgress?.req?.complete === true;
  const hasLeft = owesEarlier && socket.readableEnded;
  const isSilent = socket.bytesRead === 0;
  if (UNANSWERABLE.test(error.code ?? '') || !socket.writable || hasLeft || isSilent) return void socket.destroy();
  // There is another error for any data that arrives in the meantime.
  if (waiting.has(socket)) return;
  if (owesEarlier) {
    waiting.add(socket);
    inProgress.once('close', () => {
      waiting.delete(socket);
      answerProtocolError(error, socket, count, lingerMs);
    });
    return;
  }
  if (inProgress?.headersSent) return void socket.destroy();
  const { code, reason } = REFUSALS[error.code ?? ''] ?? MALFORMED;
  const { status } = PROBLEMS[code];
  const body = JSON.stringify(problem(code));
  count(status);
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'Connection: close',
    `Content-Type: ${PROBLEM_CONTENT_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Cache-Control: no-store',
  ];
  const answer = `${head.join('\r\n')}\r\n\r\n${body}`;
  if (lingerMs === 0) return void socket.end(answer, () => socket.destroy());
  lingering.set(socket, socket.bytesRead);
  const timer = setTimeout(() => socket.destroy(), lingerMs);
  socket.once('close', () => clearTimeout(timer));
  socket.once('end', () => socket.destroy());
  socket.end(answer);
}

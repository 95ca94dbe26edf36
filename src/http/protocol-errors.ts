import type { Socket } from 'node:net';
import { PROBLEM_CONTENT_TYPE, problem } from '../core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../core/problems/problems.ts';

interface Refusal {
  readonly code: ProblemCode;
  /**
   * Written out: importing a value of node:http loads every lazy part of it, the bundled fetch client among them.
   */
  readonly reason: string;
}

/** What Node's HTTP parser refuses, by Node's codes; everything else is a malformed request. */
const REFUSALS: Readonly<Record<string, Refusal>> = {
  HPE_HEADER_OVERFLOW: { code: 'headers_too_large', reason: 'Request Header Fields Too Large' },
  ERR_HTTP_REQUEST_TIMEOUT: { code: 'request_timeout', reason: 'Request Timeout' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { code: 'body_too_large', reason: 'Content Too Large' },
};
const MALFORMED: Refusal = { code: 'malformed_request', reason: 'Bad Request' };

/**
 * What Node keeps on a socket: the response in progress. Node's own handler looks at it for the same reason. It is
 * absent from the types.
 */
type HttpSocket = Socket & { _httpMessage?: { headersSent: boolean; req?: { complete: boolean } } | null };

/**
 * Answers what is no HTTP request with a problem document and closes the connection. Nothing is written over a response
 * that has begun, nor in the place of one that is still owed to an earlier, complete request of the same connection.
 */
export function answerProtocolError(
  error: NodeJS.ErrnoException,
  socket: Socket,
  count: (status: number) => void,
): void {
  const inProgress = (socket as HttpSocket)['_httpMessage'];
  const owed = inProgress !== undefined && inProgress !== null;
  if (
    error.code === 'ECONNRESET' ||
    !socket.writable ||
    (owed && (inProgress.headersSent || inProgress.req?.complete))
  ) {
    socket.destroy();
    return;
  }
  const { code, reason } = REFUSALS[error.code ?? ''] ?? MALFORMED;
  const { status } = PROBLEMS[code];
  const body = JSON.stringify(problem(code));
  count(status);
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'Connection: close',
    `Content-Type: ${PROBLEM_CONTENT_TYPE}`,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

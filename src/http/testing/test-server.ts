import { sendProblem } from '../problem-answers.ts';
import { createHttpServer, type HttpLimits, type HttpServer } from '../server.ts';

/** Requests and connections do not time out during a test, unless the test sets a lower limit. */
const LIMITS: HttpLimits = {
  headerBytes: 1_024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 10_000,
  connectionTimeoutMs: 60_000,
  keepAliveTimeoutMs: 60_000,
  lingerTimeoutMs: 5_000,
  drainTimeoutMs: 0,
};

/** Creates an HTTP server without routes. */
export function createTestServer({
  limits = {},
  ...options
}: Partial<Pick<Parameters<typeof createHttpServer>[0], 'certificate' | 'onPlainAnswer'>> & {
  readonly limits?: Partial<HttpLimits>;
} = {}): HttpServer {
  return createHttpServer({
    limits: { ...LIMITS, ...limits },
    factsOfNoRoute: () => ({}),
    sendProblem,
    onError: (_error, _request, reply) => sendProblem(reply, 'internal'),
    ...options,
  });
}

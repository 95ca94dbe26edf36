import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { PROBLEM_CONTENT_TYPE, problem } from '../../../src/core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../../src/core/problems/problems.ts';
import { type AuthenticationOptions, registerAuthentication } from '../../../src/facade/auth/authentication.ts';
import { type Identity, identityOf } from '../../../src/facade/auth/identity.ts';
import { createProtocolErrors } from '../../../src/http/protocol-errors.ts';
import { Refusal } from '../../../src/http/refusal.ts';
import { createLogger } from '../../../src/telemetry/log.ts';
import { AUDIENCE } from './issuer.ts';

/** `rewrite` is a hook of the server that runs before the guarded scope. */
export type GuardOptions = Partial<AuthenticationOptions> & {
  readonly issuers: readonly string[];
  readonly rewrite?: (request: FastifyRequest) => Promise<void>;
};

/**
 * Starts a server that guards everything below /waas and responds to all requests there. `reached` lists the targets
 * that reached a handler, including the not-found handler of the scope.
 */
export async function startGuardedServer(options: GuardOptions) {
  const reached: { target: string; identity: Identity }[] = [];
  const app = Fastify({
    logger: false,
    http: { maxHeaderSize: 16 * 1024, requireHostHeader: false },
    clientErrorHandler: createProtocolErrors(() => {}, 5_000),
    frameworkErrors: (_error, _request, reply) => void answer(reply, 'malformed_request'),
  });
  const answer = (reply: FastifyReply, code: ProblemCode, facts: Refusal['facts'] = {}) => {
    reply.code(PROBLEMS[code].status).headers({ 'content-type': PROBLEM_CONTENT_TYPE, ...facts.headers });
    return reply.send(Buffer.from(JSON.stringify(problem(code, facts.detail))));
  };
  app.setErrorHandler((error, _request, reply) => {
    if (error instanceof Refusal) return answer(reply, error.code, error.facts);
    const { statusCode = 500 } = error as { statusCode?: number };
    return answer(reply, statusCode < 500 ? 'malformed_request' : 'internal');
  });
  app.setNotFoundHandler((_request, reply) => answer(reply, 'not_found'));
  if (options.rewrite !== undefined) app.addHook('onRequest', options.rewrite);
  await app.register(
    async scope => {
      const { issuers, rewrite: _, ...rest } = options;
      await registerAuthentication(scope, {
        audience: AUDIENCE,
        algorithms: ['RS256'],
        clockToleranceSeconds: 0,
        log: createLogger({ level: 'silent' }),
        ...rest,
        issuers,
      });
      const reach = (request: FastifyRequest) => {
        const identity = identityOf(request);
        reached.push({ target: request.url, identity });
        return { subject: identity.subject, client: identity.client, groups: identity.groups };
      };
      scope.all('/', reach);
      scope.all('/*', reach);
      // Like the facade's routes, these are in a separate scope with parameters.
      await scope.register(async inner => void inner.get('/producer/:tenant/catalog', reach));
      scope.setNotFoundHandler(reach);
    },
    { prefix: '/waas' },
  );
  await app.listen({ port: 0, host: '127.0.0.1' });
  return { port: (app.server.address() as AddressInfo).port, reached, close: () => app.close() };
}

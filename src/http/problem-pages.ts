import type { FastifyInstance } from 'fastify';
import { PROBLEM_CONTENT_TYPE, PROBLEM_TYPE_PATH, problem } from '../core/problems/problem.ts';
import { problemPage } from '../core/problems/problem-page.ts';

/** Serves a page for the `type` of each problem. No authentication is required. */
export function serveProblemPages(app: FastifyInstance): void {
  app.get<{ Params: { code: string } }>(`${PROBLEM_TYPE_PATH}:code`, (request, reply) => {
    const page = problemPage(request.params.code);
    if (page === undefined) {
      const none = Buffer.from(JSON.stringify(problem('not_found', 'This problem does not exist. Check the code.')));
      return reply.code(404).header('content-type', PROBLEM_CONTENT_TYPE).send(none);
    }
    return reply.type('text/plain; charset=utf-8').header('cache-control', 'public, max-age=3600').send(page);
  });
}

import type { FastifyInstance, FastifyReply } from 'fastify';
import { PROBLEM_CONTENT_TYPE, PROBLEM_TYPE_PATH, problem } from '../core/problems/problem.ts';
import { problemIndex, problemPage } from '../core/problems/problem-page.ts';

/** Serves a page for the `type` of each problem, and their list. No authentication is required. */
export function serveProblemPages(app: FastifyInstance): void {
  for (const path of [PROBLEM_TYPE_PATH, PROBLEM_TYPE_PATH.slice(0, -1)]) {
    app.get(path, (_request, reply) => send(reply, problemIndex()));
  }
  app.get<{ Params: { code: string } }>(`${PROBLEM_TYPE_PATH}:code`, (request, reply) => {
    const page = problemPage(request.params.code);
    if (page !== undefined) return send(reply, page);
    const none = Buffer.from(JSON.stringify(problem('not_found', `This problem does not exist. ${SEE_ALL}`)));
    return reply.code(404).header('content-type', PROBLEM_CONTENT_TYPE).send(none);
  });
}

const send = (reply: FastifyReply, page: string) =>
  reply.type('text/plain; charset=utf-8').header('cache-control', 'public, max-age=3600').send(page);

const SEE_ALL = `For all problems, see ${PROBLEM_TYPE_PATH}.`;

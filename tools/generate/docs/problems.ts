import { PROBLEM_CONTENT_TYPE, problem } from '../../../src/core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../../src/core/problems/problems.ts';
import { OF_EVERY_CALL, problemsOf } from '../../../src/facade/contract/problem-codes.ts';
import { ROUTES } from '../../../src/facade/routes.ts';
import { escapeMarkup, table } from '../markdown.ts';
import { EVENT_ROUTES } from './event-routes.ts';

/** Problems of every role that listens, and of no route. */
const WITHOUT_ROUTE: readonly ProblemCode[] = ['not_found', 'method_not_allowed'];

const CODES = Object.keys(PROBLEMS) as ProblemCode[];

/** Renders docs/problems/<code>.md: meaning of a code, what to do, and the calls that may answer it. */
export function renderProblemPages(): readonly { readonly code: ProblemCode; readonly text: string }[] {
  return CODES.map(code => ({ code, text: renderProblem(code) }));
}

function renderProblem(code: ProblemCode): string {
  const { status, title, remedy } = PROBLEMS[code];
  return [
    `# ${code}`,
    `**${status}**: ${escapeMarkup(title)}.`,
    '## What to do',
    escapeMarkup(remedy),
    ...(status === 429 || status === 503
      ? ['Wait for the number of seconds in `Retry-After`, and then repeat the call. You can safely repeat every call.']
      : []),
    '## Where it occurs',
    answeredBy(code),
    '## Example',
    `The \`Content-Type\` is \`${PROBLEM_CONTENT_TYPE}\` (RFC 9457). In the response, \`detail\` describes what you need to change in your request, and \`errors\` lists the affected fields. Both values depend on the request.`,
    `\`\`\`json\n${JSON.stringify(problem(code), null, 2)}\n\`\`\``,
    '[All problems](../problems.md) · [REST interface](../rest.md)',
  ].join('\n\n');
}

function answeredBy(code: ProblemCode): string {
  if (WITHOUT_ROUTE.includes(code))
    return 'Requests with an unknown path or with a method that the path does not support.';
  if (OF_EVERY_CALL.includes(code)) return 'All calls.';
  const line = (method: string, path: string, page: string) => `- [\`${method} ${path}\`](../${page})`;
  const ofEvents = EVENT_ROUTES.filter(({ problems }) => problems.includes(code));
  const routes = ROUTES.filter(route => problemsOf(route).includes(code));
  return [
    ...ofEvents.map(({ method, path, tag }) => line(method, path, `events.md#${anchorOf(tag)}`)),
    ...routes.map(({ method, path, tag }) => line(method, path, `rest.md#${anchorOf(tag)}`)),
  ].join('\n');
}

/** Returns GitHub's anchor of a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

/** Renders docs/problems.md: the list of codes. */
export function renderProblems(): string {
  const byStatus = CODES.toSorted((a, b) => PROBLEMS[a].status - PROBLEMS[b].status);
  return [
    '# Problems',
    `Errors are returned as problem documents (RFC 9457, \`${PROBLEM_CONTENT_TYPE}\`). Each document contains \`type\`, \`title\`, \`status\`, \`detail\` and \`code\`. If the request contains invalid fields, \`errors\` lists each field and the reason. You should use \`code\` in your programs. We can add new codes, but we do not change the meaning of existing codes. The \`type\` field contains the path of the page for the code, \`/problems/<code>\`, on the server that sent the response. Problem documents do not contain values from your request.`,
    table(
      ['Status', 'Code', 'Description', 'What to do'],
      byStatus.map(code => [
        `${PROBLEMS[code].status}`,
        `[\`${code}\`](problems/${code}.md)`,
        PROBLEMS[code].title,
        PROBLEMS[code].remedy,
      ]),
    ),
  ].join('\n\n');
}

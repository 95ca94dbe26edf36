import { PROBLEM_CONTENT_TYPE, problem } from '../../../src/core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../../src/core/problems/problems.ts';
import { OF_EVERY_CALL, problemsOf } from '../../../src/facade/contract/problem-codes.ts';
import { ROUTES } from '../../../src/facade/routes.ts';
import { escapeMarkup, table } from '../markdown.ts';
import { EVENT_ROUTES } from './event-routes.ts';

/** Problems of all listening roles which don't depend on a route. */
const WITHOUT_ROUTE: readonly ProblemCode[] = ['not_found', 'method_not_allowed'];

const CODES = Object.keys(PROBLEMS) as ProblemCode[];

/** Renders docs/problems/<code>.md: the meaning of a code, what to do, and the calls that may return it. */
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
    ...((status === 429 || status === 503) && !remedy.includes('Retry-After')
      ? ['Before you repeat the request, wait for the number of seconds in `Retry-After`.']
      : []),
    ...(remedy.includes('calls are safe to repeat')
      ? ['To find the calls that are not safe to repeat, see [Repeating a call](../rest.md#repeating-a-call).']
      : []),
    '## Where it occurs',
    answeredBy(code),
    '## Example',
    `Returned as \`${PROBLEM_CONTENT_TYPE}\` (RFC 9457). The fields \`detail\` (which explains what to change in your request) and \`errors\` (which lists the affected fields) depend on the request.`,
    `\`\`\`json\n${JSON.stringify(problem(code), null, 2)}\n\`\`\``,
    '[All problems](../problems.md) · [REST interface](../rest.md)',
  ].join('\n\n');
}

function answeredBy(code: ProblemCode): string {
  if (WITHOUT_ROUTE.includes(code))
    return 'A request with an unknown path, or with a method that the path does not support.';
  if (OF_EVERY_CALL.includes(code)) return 'All calls.';
  const line = (method: string, path: string, page: string) => `- [\`${method} ${path}\`](../${page})`;
  const ofEvents = EVENT_ROUTES.filter(({ problems }) => problems.includes(code));
  const routes = ROUTES.filter(route => problemsOf(route).includes(code));
  return [
    ...ofEvents.map(({ method, path, tag }) => line(method, path, `events.md#${anchorOf(tag)}`)),
    ...routes.map(({ method, path, tag }) => line(method, path, `rest.md#${anchorOf(tag)}`)),
  ].join('\n');
}

/** Returns the anchor of a heading on GitHub. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

/** Renders docs/problems.md, which lists all codes. */
export function renderProblems(): string {
  const byStatus = CODES.toSorted((a, b) => PROBLEMS[a].status - PROBLEMS[b].status);
  return [
    '# Problems',
    `Use this page to look up the code of an error. All errors of the REST API and of ingress are problem documents (RFC 9457, \`${PROBLEM_CONTENT_TYPE}\`) with these fields. Problem documents never contain values from your request:`,
    table(
      ['Field', 'Description'],
      [
        ['`code`', 'The code. Handle errors by their code. Codes may be added, but their meaning never changes.'],
        ['`status`', 'The HTTP status.'],
        ['`title`', 'A short description of the code.'],
        ['`detail`', 'What to do about this error.'],
        [
          '`errors`',
          'The fields that are not valid, if any: for each of them, the `pointer` (in the body), `header`, or `parameter`, and a `detail` with the reason. If more than 20 fields are not valid, it may only contain the first 20.',
        ],
        [
          '`type`',
          'The path of a page about the code (`/problems/<code>`) on the server that sent the response. `/problems/` lists all codes.',
        ],
      ],
    ),
    '## Codes',
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

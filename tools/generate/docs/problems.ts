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
    ...(status === 429 || status === 503 ? ['Repeat the call after the seconds in `Retry-After`. That is safe.'] : []),
    '## Where it occurs',
    answeredBy(code),
    '## Example',
    `\`Content-Type: ${PROBLEM_CONTENT_TYPE}\` (RFC 9457). \`detail\` has what to change in this request, and \`errors\` where. Both differ from call to call.`,
    `\`\`\`json\n${JSON.stringify(problem(code), null, 2)}\n\`\`\``,
    '[All problems](../problems.md) · [REST interface](../rest.md)',
  ].join('\n\n');
}

function answeredBy(code: ProblemCode): string {
  if (WITHOUT_ROUTE.includes(code)) return 'Unknown paths, and methods that a path does not support.';
  if (OF_EVERY_CALL.includes(code)) return 'Any call.';
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
    `Errors are problem documents (RFC 9457, \`${PROBLEM_CONTENT_TYPE}\`) with \`type\`, \`title\`, \`status\`, \`detail\`, \`code\`, and \`errors\`: the place and the reason of each fault. Use \`code\` in programs: new codes are added, but a released code never changes its meaning. \`type\` is the path of the code's page on the server that answered, \`/problems/<code>\`. A problem never contains a value that you sent.`,
    table(
      ['Status', 'Code', 'Meaning', 'What to do'],
      byStatus.map(code => [
        `${PROBLEMS[code].status}`,
        `[\`${code}\`](problems/${code}.md)`,
        PROBLEMS[code].title,
        PROBLEMS[code].remedy,
      ]),
    ),
  ].join('\n\n');
}

import { PROBLEM_CONTENT_TYPE, problem } from '../../../src/core/problems/problem.ts';
import { PROBLEMS, type ProblemCode } from '../../../src/core/problems/problems.ts';
import { OF_EVERY_CALL, problemsOf } from '../../../src/facade/contract/problem-codes.ts';
import { ROUTES } from '../../../src/facade/routes.ts';
import { escapeMarkup, table } from '../markdown.ts';
import { EVENT_ROUTES } from './event-routes.ts';

/** Where nothing is: of every role that listens, and of no route. */
const WITHOUT_ROUTE: readonly ProblemCode[] = ['not_found', 'method_not_allowed'];

const CODES = Object.keys(PROBLEMS) as ProblemCode[];

/** docs/problems/<code>.md: what a code means, what to do about it, and which calls it answers. */
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
      ? ['`Retry-After` says after how many seconds the call may be repeated; repeating it is safe.']
      : []),
    '## What it answers',
    answeredBy(code),
    '## How it looks',
    `\`Content-Type: ${PROBLEM_CONTENT_TYPE}\` (RFC 9457). \`detail\` says what to change in the very request, \`errors\` where; both differ from call to call.`,
    `\`\`\`json\n${JSON.stringify(problem(code), null, 2)}\n\`\`\``,
    '[All problems](../problems.md) · [REST interface](../rest.md)',
  ].join('\n\n');
}

function answeredBy(code: ProblemCode): string {
  if (WITHOUT_ROUTE.includes(code)) return 'Paths where nothing is, and methods that a path does not have.';
  if (OF_EVERY_CALL.includes(code)) return 'Any call.';
  const line = (method: string, path: string, page: string) => `- [\`${method} ${path}\`](../${page})`;
  const ofEvents = EVENT_ROUTES.filter(({ problems }) => problems.includes(code));
  const routes = ROUTES.filter(route => problemsOf(route).includes(code));
  return [
    ...ofEvents.map(({ method, path, tag }) => line(method, path, `events.md#${anchorOf(tag)}`)),
    ...routes.map(({ method, path, tag }) => line(method, path, `rest.md#${anchorOf(tag)}`)),
  ].join('\n');
}

/** As GitHub makes it of a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w -]/g, '')
    .replaceAll(' ', '-');
}

/** docs/problems.md: the list of the codes. */
export function renderProblems(): string {
  const byStatus = CODES.toSorted((a, b) => PROBLEMS[a].status - PROBLEMS[b].status);
  return [
    '# Problems',
    `Whatever is refused is answered with a problem document (RFC 9457, \`${PROBLEM_CONTENT_TYPE}\`): \`type\`, \`title\`, \`status\`, \`detail\`, \`code\`, and \`errors\` with a place and a reason for each fault. Programs look at \`code\`: codes are added, and what a released one means does not change. \`type\` is the path of the page about the code on the server that answered, \`/problems/<code>\`. No value that was sent is repeated.`,
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

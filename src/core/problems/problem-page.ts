import { PROBLEM_TYPE_PATH } from './problem.ts';
import { PROBLEMS, type ProblemCode } from './problems.ts';

/** Returns the page for a problem `type` as plain text, or undefined if the code is not known. */
export function problemPage(code: string): string | undefined {
  if (!Object.hasOwn(PROBLEMS, code)) return undefined;
  const { status, title, remedy } = PROBLEMS[code as ProblemCode];
  const lines = [`${code} (${status})`, '', `${title}.`, '', `What to do: ${remedy}`, '', OTHERS];
  return `${lines.join('\n')}\n`;
}

const OTHERS = `For all problems, see ${PROBLEM_TYPE_PATH}.`;

/** Returns the page that lists the codes of all problems as plain text, sorted by status. */
export function problemIndex(): string {
  const kinds = Object.entries(PROBLEMS).toSorted(([, a], [, b]) => a.status - b.status);
  const lines = kinds.map(([code, { status, title }]) => `${status} ${PROBLEM_TYPE_PATH}${code}: ${title}`);
  return `${lines.join('\n')}\n`;
}

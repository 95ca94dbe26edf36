import { PROBLEM_TYPE_PATH } from './problem.ts';
import { PROBLEMS, type ProblemCode } from './problems.ts';

/** Returns the page that the `type` of a problem leads to, as plain text; undefined when `code` is no code. */
export function problemPage(code: string): string | undefined {
  if (!Object.hasOwn(PROBLEMS, code)) return undefined;
  const { status, title, remedy } = PROBLEMS[code as ProblemCode];
  const lines = [`${code} (${status})`, '', `${title}.`, '', `What to do: ${remedy}`, '', OTHERS];
  return `${lines.join('\n')}\n`;
}

const OTHERS = `Every problem has a page like this one: ${PROBLEM_TYPE_PATH}<code>.`;

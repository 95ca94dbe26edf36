import { PROBLEM_TYPE_PATH } from './problem.ts';
import { PROBLEMS, type ProblemCode } from './problems.ts';

/** Returns the page for a problem `type` as plain text, or undefined if the code is not known. */
export function problemPage(code: string): string | undefined {
  if (!Object.hasOwn(PROBLEMS, code)) return undefined;
  const { status, title, remedy } = PROBLEMS[code as ProblemCode];
  const lines = [`${code} (${status})`, '', `${title}.`, '', `What to do: ${remedy}`, '', OTHERS];
  return `${lines.join('\n')}\n`;
}

const OTHERS = `Every problem has a page: ${PROBLEM_TYPE_PATH}<code>.`;

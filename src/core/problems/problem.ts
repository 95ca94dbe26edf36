import { PROBLEMS, type ProblemCode } from './problems.ts';

/** One fault: its place (JSON Pointer into the body, header or query parameter) and what is wrong. Never the value. */
export interface ProblemError {
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly detail: string;
}

/** Body of an error answer, `application/problem+json` (RFC 9457). `type` is the path of its page on this server. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly errors?: readonly ProblemError[];
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/** Path prefix of the problem pages. Every role that answers problems serves them. */
export const PROBLEM_TYPE_PATH = '/problems/';

/**
 * Returns the document for `code`. `detail` is what to change in this request; default is the code's remedy. It must
 * contain no secret: no key, no token, no header that was sent.
 */
export function problem(code: ProblemCode, detail?: string, errors?: readonly ProblemError[]): ProblemDocument {
  const { status, title, remedy } = PROBLEMS[code];
  return {
    type: `${PROBLEM_TYPE_PATH}${code}`,
    title,
    status,
    detail: detail ?? remedy,
    code,
    ...(errors === undefined || errors.length === 0 ? {} : { errors }),
  };
}

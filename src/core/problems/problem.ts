import { PROBLEMS, type ProblemCode } from './problems.ts';

/** One fault: where it is (JSON Pointer into the body, header or query parameter) and what is wrong. Never the value. */
export interface ProblemError {
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly detail: string;
}

/** Body of an error answer, `application/problem+json` (RFC 9457); `type` is the path of its page on the same server. */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly errors?: readonly ProblemError[];
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/** Path of the page of a problem, without its code: served by every role that answers problems. */
export const PROBLEM_TYPE_PATH = '/problems/';

/**
 * The document for `code`. `detail` says what to change in this very request; without it, the code's own remedy. It
 * must hold nothing secret: no key, no token, no header that was sent.
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

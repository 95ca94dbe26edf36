import { PROBLEMS, type ProblemCode } from './problems.ts';

/**
 * An error with its location (a JSON Pointer into the body, a header or a query parameter) and a description. It does
 * not contain the value.
 */
export interface ProblemError {
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly detail: string;
}

/**
 * The body of an error response, `application/problem+json` (RFC 9457). The `type` is the path of its page on this
 * server.
 */
export interface ProblemDocument {
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ProblemCode;
  readonly errors?: readonly ProblemError[];
}

export const PROBLEM_CONTENT_TYPE = 'application/problem+json';

/** The path prefix of the problem pages. All roles that return problems serve these pages. */
export const PROBLEM_TYPE_PATH = '/problems/';

/**
 * Returns the document for `code`. The `detail` describes the required change and defaults to the remedy of the code.
 * It must not contain secrets, such as keys, tokens or headers from the request.
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

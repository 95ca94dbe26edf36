import { PROBLEMS, type ProblemCode } from './problems.ts';

/**
 * An error with a description and its location, which can be a JSON Pointer into the body, a header, or a query
 * parameter. The value itself is never included.
 */
export interface ProblemError {
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly detail: string;
}

/**
 * The body used for error responses. The content type is `application/problem+json` (RFC 9457). `type` is the path of
 * the problem's page on this server.
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

/** The prefix for the paths of problem pages. All roles that can return a problem provide these pages. */
export const PROBLEM_TYPE_PATH = '/problems/';

/**
 * Returns the document for the given `code`. You can use `detail` to describe the required change. By default, this is
 * the remedy of the code. The detail must not contain any secrets, such as keys, tokens, or headers from the request.
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

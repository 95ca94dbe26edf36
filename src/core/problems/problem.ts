import { PROBLEMS, type ProblemCode } from './problems.ts';

/**
 * An error with a description and its location, which can be a JSON Pointer into the body, a header, or a query
 * parameter. Never includes the value itself.
 */
export interface ProblemError {
  readonly pointer?: string;
  readonly header?: string;
  readonly parameter?: string;
  readonly detail: string;
}

/**
 * Body of an error response, `application/problem+json` (RFC 9457). `type` is the path of the problem's page on this
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

/** Path prefix of the problem pages, which are served by every role that returns problems. */
export const PROBLEM_TYPE_PATH = '/problems/';

/**
 * Returns the document for `code`. `detail` describes what needs to change, and defaults to the code's remedy. It must
 * not contain any secrets, such as keys, tokens, or headers from the request.
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

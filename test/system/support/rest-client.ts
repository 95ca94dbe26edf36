import type { ProblemDocument } from '../../../src/core/problems/problem.ts';
import { expectDocumented } from './documented.ts';

/** A response of the facade. */
export interface Reply<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T;
}

/** A client for `/waas` calls on behalf of one person. */
export interface RestClient {
  readonly call: <T = unknown>(
    method: 'GET' | 'POST' | 'PUT' | 'DELETE',
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ) => Promise<Reply<T>>;
  readonly get: <T = unknown>(path: string) => Promise<Reply<T>>;
  readonly post: <T = unknown>(path: string, body?: unknown) => Promise<Reply<T>>;
  readonly put: <T = unknown>(path: string, body?: unknown) => Promise<Reply<T>>;
  readonly remove: <T = unknown>(path: string, body?: unknown) => Promise<Reply<T>>;
}

export type Problem = Reply<ProblemDocument>;

/** @param token of the person. If undefined, no token is sent */
export function createRestClient(facadeUrl: string, token: string | undefined): RestClient {
  const call: RestClient['call'] = async <T>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ) => {
    const response = await fetch(`${facadeUrl}${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const { status, headers: answered } = response;
    const received: unknown = text === '' ? undefined : JSON.parse(text);
    expectDocumented(method, path, status, received);
    return { status, headers: answered, body: received as T };
  };
  return {
    call,
    get: path => call('GET', path),
    post: (path, body) => call('POST', path, body),
    put: (path, body) => call('PUT', path, body),
    remove: (path, body) => call('DELETE', path, body),
  };
}

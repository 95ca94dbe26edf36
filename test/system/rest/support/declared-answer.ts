import { expect } from 'vitest';
import { ROUTES } from '../../../../src/facade/routes.ts';
import type { Reply } from '../../support/rest-client.ts';
import { unconventional } from './conventions.ts';

/**
 * Expects that the route declares this successful response and its body, and that it follows the conventions. Returns
 * the response.
 */
export function expectDeclared<T>(operation: string, reply: Reply<T>): Reply<T> {
  const shape = ROUTES.find(route => route.operation === operation)?.answers[reply.status];
  expect(shape, `${operation} does not declare ${reply.status}: ${JSON.stringify(reply.body)}`).toBeDefined();
  if (shape?.schema === undefined) expect(reply.body).toBeUndefined();
  else expect(shape.schema.safeParse(reply.body).error).toBeUndefined();
  expect(unconventional(reply.body), operation).toEqual([]);
  for (const header of Object.keys(shape?.headers ?? {})) expect(reply.headers.has(header), header).toBe(true);
  return reply;
}

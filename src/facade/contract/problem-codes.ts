import type { ProblemCode } from '../../core/problems/problems.ts';
import { type Route, roleOf } from './route.ts';

/** Problems that any call can return. */
export const OF_EVERY_CALL: readonly ProblemCode[] = [
  'malformed_request',
  'misplaced_token',
  'missing_token',
  'invalid_token',
  'insufficient_scope',
  'request_timeout',
  'uri_too_long',
  'expectation_failed',
  'invalid_request',
  'rate_limited',
  'headers_too_large',
  'internal',
  'missing_permission',
  'unavailable',
  'overloaded',
  'issuer_unavailable',
];

/** The problems that calls with a body can return. */
const OF_BODIES: readonly ProblemCode[] = ['malformed_body', 'body_too_large', 'unsupported_media_type'];

/** Problems for calls that write a custom resource. */
const OF_WRITES: readonly ProblemCode[] = [
  'field_managed',
  'refused_by_policy',
  'changed_meanwhile',
  'not_reconcilable',
  'being_deleted',
  'not_in_force',
];

/** The problems for calls whose responses are stored using the Idempotency-Key. */
const OF_KEYS: readonly ProblemCode[] = ['idempotency_in_progress', 'idempotency_conflict'];

/** Returns all problems for a route without duplicates, starting with the problems shared by all calls. */
export function problemsOf(route: Route): readonly ProblemCode[] {
  const mayHaveBody = route.method !== 'GET';
  const writes = mayHaveBody && route.dataPlane !== true;
  return [
    ...new Set<ProblemCode>([
      ...OF_EVERY_CALL,
      ...(route.path.includes('{') ? (['malformed_id'] as const) : []),
      ...(route.access === 'caller' ? [] : (['forbidden'] as const)),
      ...(route.access === 'caller' || roleOf(route) === 'Viewer' ? [] : (['insufficient_role'] as const)),
      ...(mayHaveBody ? OF_BODIES : []),
      ...(writes ? OF_WRITES : []),
      ...(writes && route.closes !== true ? (['workspace_paused'] as const) : []),
      ...(route.idempotency === 'answer' ? OF_KEYS : []),
      ...(route.conditional === true ? (['precondition_failed'] as const) : []),
      ...(route.problems ?? []),
    ]),
  ];
}

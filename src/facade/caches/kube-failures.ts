import type { ProblemError } from '../../core/problems/problem.ts';
import { PROBLEMS } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import { type ErrorCause, isKubeError, type KubeError } from '../../kube/kube-error.ts';

/** The timeout for an API server call, including retries. */
const CALL_WITHIN_MS = 4_000;

/**
 * Returns the time limits for an API server call. If the API server asks to repeat the call too late, the call fails at
 * once because of `timeoutMs`. The error of the server is kept.
 */
export function callLimits(): { readonly signal: AbortSignal; readonly timeoutMs: number } {
  return { signal: AbortSignal.timeout(CALL_WITHIN_MS), timeoutMs: CALL_WITHIN_MS };
}

/**
 * Converts a field path such as `spec.eventTypes[2]` to a JSON Pointer into the object. Any text that is not a field
 * path is ignored.
 */
function pointerOf(field: string): string {
  const words = field.split(/[.[\]]/).filter(word => word !== '');
  return words.map(word => `/${word.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** Returns the manager mentioned in a conflict message, e.g. `conflict with "kubectl" using …`. */
function managerOf({ message }: ErrorCause): string {
  return /^conflict with "([^"]*)"/.exec(message)?.[1] ?? 'another field manager';
}

/** Returns an error for each field owned by another manager. The error includes the name of the manager. */
function conflictErrors(error: KubeError): ProblemError[] {
  return error.causes
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .map(cause => {
      const field = cause.field.replace(/^\./, '');
      return { pointer: pointerOf(field), detail: `${field} is managed by ${managerOf(cause)}` };
    });
}

/**
 * Returns a 409 `field_managed`, which lists the managers and their fields, and explains how to resolve the conflict.
 */
export function fieldManaged(errors: readonly ProblemError[], cause?: unknown): Refusal {
  const conflicts = errors.map(({ detail }) => detail).join('; ');
  const detail = `${conflicts}. Change the field with this manager or apply the object without the field as this manager.`;
  return new Refusal('field_managed', { detail, errors, cause });
}

/** Matches messages from admission plugins and webhooks. A plugin or a webhook can send any status. */
const OF_A_POLICY = /\b(?:Validating|Mutating)AdmissionPolicy '|\badmission webhook "|: exceeded quota: /;
/** Matches authorizer messages, e.g. `streams "x" is forbidden: User "y" cannot patch resource "streams" …`. */
const OF_PERMISSIONS = /\bforbidden: User "[^"]*" cannot \w+ resource "/;

/**
 * Returns the refusal if the request violates a cluster policy, in which case retrying does not help. Returns undefined
 * for all other errors.
 */
function ruleRefusal(error: KubeError): Refusal | undefined {
  if (OF_PERMISSIONS.test(error.detail)) return new Refusal('missing_permission', { cause: error });
  // Can be retried, since deletion of the namespace will complete at some point.
  if (error.causes.some(({ reason }) => reason === 'NamespaceTerminating')) return undefined;
  if (!OF_A_POLICY.test(error.detail) && error.status !== 403) return undefined;
  return new Refusal('refused_by_policy', {
    detail: `${error.detail.slice(0, 1_000)} ${PROBLEMS.refused_by_policy.remedy}`,
    cause: error,
  });
}

/** Returns the problem for an API server error. Caller input can never cause a 5xx. */
export function kubeRefusal(cause: unknown): Refusal {
  if (cause instanceof Refusal) return cause;
  if (!isKubeError(cause)) return new Refusal('unavailable', { cause });
  const conflicts = conflictErrors(cause);
  if (conflicts.length > 0) return fieldManaged(conflicts, cause);
  const ruled = ruleRefusal(cause);
  if (ruled !== undefined) return ruled;
  if (cause.status === 409) return new Refusal('changed_meanwhile', { cause });
  if (cause.status === 422 || cause.status === 400) {
    const errors = cause.causes.map(({ field, message }) => ({ pointer: pointerOf(field), detail: message }));
    return new Refusal('invalid_request', { errors, cause });
  }
  // If the namespace is missing or being deleted, the workspace is either not ready yet or has been deleted.
  return new Refusal('unavailable', { cause });
}

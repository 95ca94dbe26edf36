import type { ProblemError } from '../../core/problems/problem.ts';
import { PROBLEMS } from '../../core/problems/problems.ts';
import { Refusal } from '../../http/refusal.ts';
import { type ErrorCause, isKubeError, type KubeError } from '../../kube/kube-error.ts';

/** A call to the API server, with its repetitions. */
export const CALL_WITHIN_MS = 4_000;

/** `spec.eventTypes[2]` as a JSON Pointer into the object; what is no path of fields stays out. */
export function pointerOf(field: string): string {
  const words = field.split(/[.[\]]/).filter(word => word !== '');
  return words.map(word => `/${word.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The manager that a conflict names: `conflict with "kubectl" using …`. */
function managerOf({ message }: ErrorCause): string {
  return /^conflict with "([^"]*)"/.exec(message)?.[1] ?? 'another field manager';
}

/** One fault for each field that another manager owns, with the manager's name. */
export function conflictErrors(error: KubeError): ProblemError[] {
  return error.causes
    .filter(({ reason }) => reason === 'FieldManagerConflict')
    .map(cause => {
      const field = cause.field.replace(/^\./, '');
      return { pointer: pointerOf(field), detail: `${field} is managed by ${managerOf(cause)}` };
    });
}

/** A 409 `field_managed` that names each manager and field, and says how to get out of it. */
export function fieldManaged(errors: readonly ProblemError[], cause?: unknown): Refusal {
  const said = errors.map(({ detail }) => detail).join('; ');
  const detail = `${said}. Change it there, or give the field up: apply the object without it as that manager.`;
  return new Refusal('field_managed', { detail, errors, cause });
}

/** What admission plugins and webhooks write into a refusal, whatever status they choose. */
const OF_A_POLICY = /\b(?:Validating|Mutating)AdmissionPolicy '|\badmission webhook "|: exceeded quota: /;
/** What the authorizer writes: `streams "x" is forbidden: User "y" cannot patch resource "streams" …`. */
const OF_PERMISSIONS = /\bforbidden: User "[^"]*" cannot \w+ resource "/;

/** Returns the refusal that a rule of the cluster means, undefined where no rule refused. Sending again changes nothing. */
function refusalOfRule(error: KubeError): Refusal | undefined {
  if (OF_PERMISSIONS.test(error.detail)) return new Refusal('missing_permission', { cause: error });
  // A namespace on its way out is a matter of time.
  if (error.causes.some(({ reason }) => reason === 'NamespaceTerminating')) return undefined;
  if (!OF_A_POLICY.test(error.detail) && error.status !== 403) return undefined;
  return new Refusal('refused_by_policy', {
    detail: `${error.detail.slice(0, 1_000)} ${PROBLEMS.refused_by_policy.remedy}`,
    cause: error,
  });
}

/** What a failure of the API server means to the caller: nothing that the caller sent makes a 5xx of it. */
export function refusalOf(cause: unknown): Refusal {
  if (cause instanceof Refusal) return cause;
  if (!isKubeError(cause)) return new Refusal('unavailable', { cause });
  const conflicts = conflictErrors(cause);
  if (conflicts.length > 0) return fieldManaged(conflicts, cause);
  const ruled = refusalOfRule(cause);
  if (ruled !== undefined) return ruled;
  if (cause.status === 409) return new Refusal('changed_meanwhile', { cause });
  if (cause.status === 422 || cause.status === 400) {
    const errors = cause.causes.map(({ field, message }) => ({ pointer: pointerOf(field), detail: message }));
    return new Refusal('invalid_request', { errors, cause });
  }
  // A namespace that is missing or on its way out: the workspace is not there yet, or not any more.
  return new Refusal('unavailable', { cause });
}

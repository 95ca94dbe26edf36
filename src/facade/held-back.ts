import { isDeepStrictEqual } from 'node:util';
import type { ProblemError } from '../core/problem.ts';

/** One entry of `metadata.managedFields`. */
interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: Readonly<Record<string, unknown>> };
}

interface Written {
  readonly metadata: object;
  readonly spec: object;
}

function fieldsOf(object: Written, manager: string, field: string): string[] {
  const managed = (object.metadata as { managedFields?: readonly ManagedFields[] }).managedFields ?? [];
  return managed
    .filter(entry => entry.manager !== manager && entry.subresource === undefined)
    .filter(entry => entry.fieldsV1?.['f:spec'] !== undefined && `f:${field}` in entry.fieldsV1['f:spec'])
    .map(entry => entry.manager ?? 'another field manager');
}

/**
 * What of a wanted spec another manager keeps as it is. Server-side apply tells of a value that differs (409), but not of
 * a field that is wanted absent and that somebody else still owns: it would silently stay.
 *
 * @param concern the fields that this manager writes, present in `wanted` or wanted absent
 * @param wanted what was or will be applied
 * @param object as the API server has it, with its managed fields
 */
export function heldBack(
  object: Written,
  wanted: Readonly<Record<string, unknown>>,
  concern: readonly string[],
  manager: string,
): ProblemError[] {
  return concern.flatMap(field => {
    const present = (object.spec as Readonly<Record<string, unknown>>)[field];
    if (present === undefined || isDeepStrictEqual(present, wanted[field])) return [];
    const [owner] = fieldsOf(object, manager, field);
    if (owner === undefined) return [];
    return [{ pointer: `/spec/${field}`, detail: `spec.${field} is managed by ${owner}` }];
  });
}

import { isDeepStrictEqual } from 'node:util';
import type { ProblemError } from '../../core/problems/problem.ts';
import { Refusal } from '../../http/refusal.ts';
import { type ManagedFields, managedFieldsOf, partsOf } from '../../kube/managed-fields.ts';

interface Written {
  readonly metadata: object;
  readonly spec: object;
}

function entriesOf(object: Pick<Written, 'metadata'>, manager: string, field: string): ManagedFields[] {
  return managedFieldsOf(object).filter(entry => entry.manager !== manager && partsOf(entry, field) !== undefined);
}

const nameOf = ({ manager }: ManagedFields) => manager ?? 'another field manager';

/** Returns all other managers that own a spec field, or a part of it. */
export function otherManagers(object: Pick<Written, 'metadata'>, manager: string, field: string): string[] {
  return entriesOf(object, manager, field).map(nameOf);
}

/**
 * Checks that the object is not managed by another manager, for example because it is stored in Git. In this case, the
 * object would be recreated.
 *
 * @param identity an immutable field that is applied by each manager of the whole object
 * @throws Refusal 409 `managed_elsewhere`
 */
export function assertNotManagedElsewhere(
  kind: 'Block' | 'Subscription',
  object: { readonly metadata: { readonly name: string; readonly namespace?: string | undefined } },
  manager: string,
  identity: string,
): void {
  const holders = otherManagers(object, manager, identity);
  if (holders.length === 0) return;
  const { name, namespace } = object.metadata;
  const where = `${kind} ${name} in the namespace ${namespace} is managed by ${holders.join(', ')}`;
  throw new Refusal('managed_elsewhere', `${where}. No changes were made. Delete the ${kind} with its field manager.`);
}

/**
 * Returns all parts of a structure which should be absent, but are owned by another manager. Needs to be checked before
 * each write, since server-side apply would merge them.
 *
 * @param object as read from the API server, including managed fields
 */
export function conflictingFieldsWithin(
  object: Pick<Written, 'metadata'>,
  wanted: Readonly<Record<string, unknown>>,
  concern: readonly string[],
  manager: string,
): ProblemError[] {
  return concern.flatMap(field => {
    const structure = wanted[field];
    if (typeof structure !== 'object' || structure === null || Array.isArray(structure)) return [];
    const held = entriesOf(object, manager, field).find(entry =>
      Object.keys(partsOf(entry, field) ?? {}).some(
        part => part.startsWith('f:') && (structure as Readonly<Record<string, unknown>>)[part.slice(2)] === undefined,
      ),
    );
    return held === undefined ? [] : [managedBy(field, nameOf(held))];
  });
}

function managedBy(field: string, manager: string): ProblemError {
  return { pointer: `/spec/${field}`, detail: `spec.${field} is managed by ${manager}` };
}

/**
 * Returns the spec fields whose values are preserved by another manager. Server-side apply does return a 409 when
 * values differ. However, there is no error for a field that should be absent and is owned by another manager. This
 * field would simply remain.
 *
 * @param concern fields written by this manager, including those that should be absent
 * @param wanted spec that was or will be applied
 * @param object as read from the API server, including managed fields
 */
export function conflictingFields(
  object: Written,
  wanted: Readonly<Record<string, unknown>>,
  concern: readonly string[],
  manager: string,
): ProblemError[] {
  return concern.flatMap(field => {
    const present = (object.spec as Readonly<Record<string, unknown>>)[field];
    if (present === undefined || isDeepStrictEqual(present, wanted[field])) return [];
    const [owner] = otherManagers(object, manager, field);
    return owner === undefined ? [] : [managedBy(field, owner)];
  });
}

import { isDeepStrictEqual } from 'node:util';

/**
 * A set of fields as used by server-side apply. A key is either `f:` followed by the name of a field, or `k:` followed
 * by the key of a list item. Values hold the fields below.
 */
export interface FieldSet {
  readonly [entry: string]: FieldSet;
}

/** An entry in `metadata.managedFields`. An entry contains the fields of a single manager. */
export interface ManagedFields {
  readonly manager?: string;
  /** How the manager writes these fields. A manager has a separate entry for each operation. */
  readonly operation?: 'Apply' | 'Update';
  readonly subresource?: string;
  /** The last time at which the manager changed one of its fields, in RFC 3339 format. */
  readonly time?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: FieldSet };
}

/**
 * An object returned by the API server. Cached objects can't be used here, because their managed fields have been
 * removed.
 */
interface Managed {
  readonly metadata: object;
}

/** Returns an object's managed fields. Entries for subresources are not included. */
export function managedFieldsOf({ metadata }: Managed): ManagedFields[] {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields.filter(({ subresource }) => subresource === undefined);
}

/**
 * Returns the fields below a spec field that are included in an entry. Returns undefined if the manager of this entry
 * does not own the field.
 */
export function partsOf({ fieldsV1 }: ManagedFields, field: string): FieldSet | undefined {
  return fieldsV1?.['f:spec']?.[`f:${field}`];
}

/**
 * Returns the managers owning an item of a list.
 * @param field the list in the spec
 * @param id the `id` of the item (`k:{"id":"…"}`)
 */
export function managersOfItem(object: Managed, field: string, id: string): string[] {
  const idOf = (entry: string) =>
    entry.startsWith('k:') ? (JSON.parse(entry.slice(2)) as { readonly id?: unknown }).id : undefined;
  return managedFieldsOf(object)
    .filter(entry => Object.keys(partsOf(entry, field) ?? {}).some(each => idOf(each) === id))
    .flatMap(({ manager }) => manager ?? []);
}

/**
 * Returns the part of a spec owned by a field manager, with the current values. To change any of these fields, the
 * manager needs to send all of them, since server-side apply removes whatever is omitted. Lists are always included in
 * full.
 */
export function ownedPart<Spec extends object>(
  object: Managed & { readonly spec: Spec },
  manager: string,
): Partial<Spec> {
  const fields = managedFieldsOf(object).find(entry => entry.manager === manager)?.fieldsV1?.['f:spec'];
  return fields === undefined ? {} : (pick(object.spec as Readonly<Record<string, unknown>>, fields) as Partial<Spec>);
}

function pick(value: Readonly<Record<string, unknown>>, fields: FieldSet): unknown {
  const below = Object.entries(fields).filter(([entry]) => entry.startsWith('f:'));
  if (below.length === 0) return value;
  return Object.fromEntries(
    below.flatMap(([entry, part]) => {
      const child = value[entry.slice(2)];
      return child === undefined ? [] : [[entry.slice(2), pick(child as Readonly<Record<string, unknown>>, part)]];
    }),
  );
}

/**
 * Returns true if applying this spec again would not change anything: the manager has applied the same fields, and all
 * of them still have these values. Returns false for lists whose items can have several managers, because the owners of
 * each item are not compared.
 */
export function isApplied(object: Managed & { readonly spec: object }, manager: string, spec: object): boolean {
  const applied = managedFieldsOf(object).filter(entry => entry.manager === manager && entry.operation === 'Apply');
  const [{ fieldsV1 = {} } = {}] = applied;
  const fields = fieldsV1['f:spec'];
  const isOnlySpec = applied.length === 1 && Object.keys(fieldsV1).length === 1;
  return isOnlySpec && fields !== undefined && hasFields(fields, spec, object.spec);
}

/** Returns true if the wanted value consists of exactly these fields, and all of them have the same values. */
function hasFields(fields: FieldSet, wanted: unknown, present: unknown): boolean {
  const entries = Object.entries(fields).filter(([entry]) => entry !== '.');
  if (entries.length === 0) return isDeepStrictEqual(wanted, present);
  if (!isStructure(wanted) || !isStructure(present)) return false;
  const names = Object.keys(wanted).filter(name => wanted[name] !== undefined);
  return (
    names.length === entries.length &&
    entries.every(([entry, below]) => {
      const name = entry.slice(2);
      return entry.startsWith('f:') && wanted[name] !== undefined && hasFields(below, wanted[name], present[name]);
    })
  );
}

function isStructure(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A set of fields as server-side apply keeps it: `f:` and a name, or `k:` and the key of a list item, to what is below. */
export interface FieldSet {
  readonly [entry: string]: FieldSet;
}

/** One entry of `metadata.managedFields`: the fields of a manager. */
export interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  /** RFC 3339: when the manager last changed one of its fields. */
  readonly time?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: FieldSet };
}

/** An object as the API server returns it. Caches keep no managed fields. */
interface Managed {
  readonly metadata: object;
}

/** Returns the entries of an object without those of its subresources. */
export function managedFieldsOf({ metadata }: Managed): ManagedFields[] {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields.filter(({ subresource }) => subresource === undefined);
}

/** Returns the parts of a field of the spec that an entry names; undefined if its manager does not own the field. */
export function partsOf({ fieldsV1 }: ManagedFields, field: string): FieldSet | undefined {
  return fieldsV1?.['f:spec']?.[`f:${field}`];
}

/**
 * Returns the field managers of a list item by `id`, in the format of server-side apply (`k:{"id":"…"}`).
 * @param field the name of the list in the spec
 */
export function managersOfItem(object: Managed, field: string, id: string): string[] {
  const idOf = (entry: string) =>
    entry.startsWith('k:') ? (JSON.parse(entry.slice(2)) as { readonly id?: unknown }).id : undefined;
  return managedFieldsOf(object)
    .filter(entry => Object.keys(partsOf(entry, field) ?? {}).some(each => idOf(each) === id))
    .flatMap(({ manager }) => manager ?? []);
}

/**
 * Returns the part of a spec that a field manager owns, with its current values. When a manager changes a field, it
 * must send all of its other fields again, because server-side apply removes fields that are not included. Lists are
 * handled as a single value.
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

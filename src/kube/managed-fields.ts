/**
 * A set of fields in the format of server-side apply. The keys are `f:` followed by the name of a field, or `k:`
 * followed by the key of a list item. The values are the fields below it.
 */
export interface FieldSet {
  readonly [entry: string]: FieldSet;
}

/** An entry of `metadata.managedFields`, which contains the fields of one manager. */
export interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  /** The time when the manager last changed one of its fields, in RFC 3339 format. */
  readonly time?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: FieldSet };
}

/**
 * An object that was returned by the API server. Objects in caches cannot be used here because they do not include
 * managed fields.
 */
interface Managed {
  readonly metadata: object;
}

/** Returns the managed fields of an object. Entries for subresources are not included. */
export function managedFieldsOf({ metadata }: Managed): ManagedFields[] {
  const { managedFields = [] } = metadata as { readonly managedFields?: readonly ManagedFields[] };
  return managedFields.filter(({ subresource }) => subresource === undefined);
}

/**
 * Returns the fields below a spec field that are included in an entry. Returns undefined if the field is not owned by
 * the manager of the entry.
 */
export function partsOf({ fieldsV1 }: ManagedFields, field: string): FieldSet | undefined {
  return fieldsV1?.['f:spec']?.[`f:${field}`];
}

/**
 * Returns the managers that own a list item. @param field the list in the spec @param id the `id` of the item
 * (`k:{"id":"…"}`)
 */
export function managersOfItem(object: Managed, field: string, id: string): string[] {
  const idOf = (entry: string) =>
    entry.startsWith('k:') ? (JSON.parse(entry.slice(2)) as { readonly id?: unknown }).id : undefined;
  return managedFieldsOf(object)
    .filter(entry => Object.keys(partsOf(entry, field) ?? {}).some(each => idOf(each) === id))
    .flatMap(({ manager }) => manager ?? []);
}

/**
 * Returns the part of a spec that is owned by a field manager, with the current values. The manager must send all of
 * these fields when it changes one of them, because server-side apply removes fields that are omitted. Lists are always
 * included as a whole.
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

/** The ownership metadata of an object. */
interface Managed {
  readonly metadata: object;
}

interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: Readonly<Record<string, Readonly<Record<string, unknown>> | undefined>> };
}

function idOf(entry: string): unknown {
  return entry.startsWith('k:') ? (JSON.parse(entry.slice(2)) as { readonly id?: unknown }).id : undefined;
}

/**
 * Returns the field managers of a list item by `id`, as server-side apply keeps them (`k:{"id":"…"}`).
 *
 * @param object from the API server, with its managed fields
 * @param field the list, a field of the spec
 */
export function itemOwners({ metadata }: Managed, field: string, id: string): string[] {
  const managed = (metadata as { readonly managedFields?: readonly ManagedFields[] }).managedFields ?? [];
  return managed
    .filter(({ subresource }) => subresource === undefined)
    .filter(({ fieldsV1 }) => Object.keys(fieldsV1?.['f:spec']?.[`f:${field}`] ?? {}).some(entry => idOf(entry) === id))
    .flatMap(({ manager }) => manager ?? []);
}

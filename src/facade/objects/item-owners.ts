/** The part of an object that says who manages what. */
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
 * Field managers that an item of a list by `id` belongs to, as server-side apply keeps them (`k:{"id":"…"}`).
 *
 * @param object as the API server has it, with its managed fields
 * @param field of the spec: the list
 */
export function itemOwners({ metadata }: Managed, field: string, id: string): string[] {
  const managed = (metadata as { readonly managedFields?: readonly ManagedFields[] }).managedFields ?? [];
  return managed
    .filter(({ subresource }) => subresource === undefined)
    .filter(({ fieldsV1 }) => Object.keys(fieldsV1?.['f:spec']?.[`f:${field}`] ?? {}).some(entry => idOf(entry) === id))
    .flatMap(({ manager }) => manager ?? []);
}

interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: Fields };
}

interface Fields {
  readonly [entry: string]: Fields;
}

/**
 * Returns the part of a spec that a field manager owns, with its current values. The manager must repeat it when it
 * changes one field, because server-side apply removes what a manager leaves out. Lists are taken as a whole.
 *
 * @param object from the API server, with its managed fields
 */
export function ownedPart<Spec extends object>(
  object: { readonly metadata: object; readonly spec: Spec },
  manager: string,
): Partial<Spec> {
  const managed = (object.metadata as { readonly managedFields?: readonly ManagedFields[] }).managedFields ?? [];
  const fields = managed.find(entry => entry.manager === manager && entry.subresource === undefined)?.fieldsV1?.[
    'f:spec'
  ];
  return fields === undefined ? {} : (pick(object.spec as Readonly<Record<string, unknown>>, fields) as Partial<Spec>);
}

function pick(value: Readonly<Record<string, unknown>>, fields: Fields): unknown {
  const names = Object.keys(fields).filter(entry => entry.startsWith('f:'));
  if (names.length === 0) return value;
  return Object.fromEntries(
    names.flatMap(entry => {
      const child = value[entry.slice(2)];
      const below = fields[entry] as Fields;
      if (child === undefined) return [];
      return [[entry.slice(2), pick(child as Readonly<Record<string, unknown>>, below)]];
    }),
  );
}

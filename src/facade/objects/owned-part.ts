interface ManagedFields {
  readonly manager?: string;
  readonly subresource?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: Fields };
}

interface Fields {
  readonly [entry: string]: Fields;
}

/**
 * The part of a spec that a field manager said, with its values of now: what it has to say again when it changes one
 * field, because server-side apply takes back what a manager no longer says. Lists are taken as a whole.
 *
 * @param object as the API server has it, with its managed fields
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

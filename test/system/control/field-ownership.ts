import { isDeepStrictEqual } from 'node:util';

interface ManagedFields {
  readonly manager: string;
  readonly subresource?: string;
  readonly fieldsV1?: { readonly 'f:spec'?: Fields };
}

interface Fields {
  readonly [entry: string]: Fields;
}

/** An object including its managed fields. */
export interface Managed {
  readonly metadata: { readonly managedFields?: readonly ManagedFields[] };
  readonly spec: Readonly<Record<string, unknown>>;
}

const SEPARATOR = ' › ';

/**
 * Returns the leaves of managed fields, such as `endpoint › url`. List items are named by their key, such as
 * `ingressKeys › {"id":"a"} › sha256`.
 */
function leavesOf(fields: Fields, at: readonly string[] = []): string[] {
  const below = Object.keys(fields).filter(entry => entry !== '.');
  if (below.length === 0) return [at.join(SEPARATOR)];
  return below.flatMap(entry => leavesOf(fields[entry] as Fields, [...at, entry.slice(2)]));
}

/** Returns `manager: field` for all spec fields specified by a manager. */
export function ownershipOf({ metadata }: Managed): string[] {
  return (metadata.managedFields ?? [])
    .filter(({ subresource }) => subresource === undefined)
    .flatMap(({ manager, fieldsV1 }) =>
      fieldsV1?.['f:spec'] === undefined ? [] : leavesOf(fieldsV1['f:spec']).map(field => `${manager}: ${field}`),
    )
    .toSorted();
}

export function ownersOf(object: Managed, field: string): string[] {
  return ownershipOf(object).flatMap(entry => {
    const [manager = '', of = ''] = entry.split(': ');
    return of === field || of.startsWith(`${field}${SEPARATOR}`) ? [manager] : [];
  });
}

function valueAt(spec: unknown, field: string): unknown {
  return field.split(SEPARATOR).reduce<unknown>((value, step) => {
    if (!step.startsWith('{')) return (value as Readonly<Record<string, unknown>> | undefined)?.[step];
    const { id } = JSON.parse(step) as { id: string };
    return (value as readonly { readonly id: string }[] | undefined)?.find(item => item.id === id);
  }, spec);
}

/**
 * Returns the fields of other field managers that a write took over, changed, or gave to them. There are none if
 * server-side apply is used correctly.
 * @param isWriter whether a manager is the writer
 */
export function trespasses(
  before: Managed | undefined,
  after: Managed | undefined,
  isWriter: (manager: string) => boolean,
): string[] {
  const others = (object: Managed | undefined) =>
    object === undefined ? [] : ownershipOf(object).filter(entry => !isWriter(entry.split(': ')[0] as string));
  const [had, has] = [others(before), others(after)];
  const changed = had.filter(entry => {
    const field = entry.slice(entry.indexOf(': ') + 2);
    return has.includes(entry) && !isDeepStrictEqual(valueAt(before?.spec, field), valueAt(after?.spec, field));
  });
  return [
    ...had.filter(entry => !has.includes(entry)).map(entry => `lost by ${entry}`),
    ...has.filter(entry => !had.includes(entry)).map(entry => `given to ${entry}`),
    ...changed.map(entry => `changed under ${entry}`),
  ];
}

/** Parts of a JSON Schema used to build an example. */
export interface ExampleSchema {
  readonly $ref?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly examples?: readonly unknown[];
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, ExampleSchema>>;
  readonly required?: readonly string[];
  readonly items?: ExampleSchema;
  readonly anyOf?: readonly ExampleSchema[];
  readonly oneOf?: readonly ExampleSchema[];
}

type Resolve = (ref: string) => ExampleSchema | undefined;

const NOTHING = Symbol('no example');

/**
 * Uses the examples of all fields to build an example for a schema. All required fields are included, as well as any
 * optional ones that have an example. Returns undefined if there is a required field without an example. For ids, the
 * placeholders in `EXAMPLE_ID` are used.
 */
export function exampleOf(schema: ExampleSchema, resolve: Resolve): unknown {
  const value = build(schema, resolve, true);
  return value === NOTHING ? undefined : value;
}

/** @param needed is false for an optional field, for which no value is generated */
function build(schema: ExampleSchema, resolve: Resolve, needed: boolean): unknown {
  if (schema.examples !== undefined && schema.examples.length > 0) return schema.examples[0];
  if (schema.$ref !== undefined) {
    const target = resolve(schema.$ref);
    return target === undefined ? NOTHING : build(target, resolve, needed);
  }
  if (schema.properties !== undefined) return buildObject(schema, resolve, needed);
  if (schema.items !== undefined) {
    const item = build(schema.items, resolve, needed);
    return item === NOTHING ? NOTHING : [item];
  }
  const [first] = schema.anyOf ?? schema.oneOf ?? [];
  if (first !== undefined) return build(first, resolve, needed);
  if (!needed) return NOTHING;
  if ('const' in schema) return schema.const;
  if (schema.enum !== undefined) return schema.enum[0];
  return schema.type === 'boolean' ? true : NOTHING;
}

function buildObject({ properties = {}, required = [] }: ExampleSchema, resolve: Resolve, needed: boolean): unknown {
  const value: Record<string, unknown> = {};
  for (const [name, child] of Object.entries(properties)) {
    const mandatory = required.includes(name);
    const made = build(child, resolve, mandatory);
    if (made !== NOTHING) value[name] = made;
    else if (mandatory) return NOTHING;
  }
  return Object.keys(value).length === 0 && !needed ? NOTHING : value;
}

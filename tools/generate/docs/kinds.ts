import { CONDITION_MEANING } from '../../../src/api/condition-reasons.ts';
import { buildCrd } from '../../../src/api/crd.ts';
import { GROUP, VERSION } from '../../../src/api/group-version.ts';
import type { KindDefinition } from '../../../src/api/kind.ts';
import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { escapeMarkup, type Row, table } from '../markdown.ts';

/** The parts of a structural schema used on the page. */
interface Schema {
  description?: string;
  type?: string;
  enum?: readonly unknown[];
  default?: unknown;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  minItems?: number;
  maxItems?: number;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  items?: Schema;
  additionalProperties?: Schema;
  'x-kubernetes-validations'?: readonly { message: string }[];
}

const CONDITION_HEAD: Row = ['Type', 'Status', 'Reason', 'Description'];

/** Renders docs/kinds.md: all fields, rules, and conditions of all kinds. */
export function renderKinds(): string {
  const names = Object.keys(KINDS) as KindName[];
  return [
    '# The kinds',
    `Use this page to look up a field, a validation rule, or a condition of the custom resources in \`${GROUP}/${VERSION}\`. You can find the same descriptions using \`kubectl explain <kind>.spec\`. To list the namespaced resources, use \`kubectl get waas\`. To list the cluster-scoped ones, use \`kubectl get waas-admin\`. Other operators also have \`subscriptions\`, \`packages\`, or \`integrations\`. If your cluster has one of them, use the short name or the full name (such as \`subscriptions.${GROUP}\`). To find the object of an id in the REST API, use a field selector (such as \`kubectl get intg -A --field-selector status.publicId=<id>\`).`,
    'A name is a DNS label with up to 63 characters and without dots. You can write a duration as `5s`, `30m`, or `168h`. A list that you apply replaces the existing list.',
    "Each status has `conditions` with an `observedGeneration`. `Ready` is True if the object has been applied, even if it closes a gate. `Reconciling` and `Stalled` are only present when True. All other conditions describe the object's effects.",
    'An object that refers to a missing one waits for it with `Ready=Unknown` and `Reconciling`. After five minutes, `Ready` changes to False, and `Stalled` is added with the same reason. Reconciliation resumes when you create the missing object. An object that waits for a person (for example to accept an invitation) never fails.',
    'During a Redis outage, objects that have been applied keep their conditions. Changed objects have the `RedisUnavailable` reason. After one minute, all Workspaces also have the `DataPlaneReachable=False` condition.',
    names.map(name => `- [${name}](#${name.toLowerCase()})`).join('\n'),
    '## Reasons of every kind',
    table(CONDITION_HEAD, conditionsOf('Account').filter(isShared)),
    ...names.flatMap(name => renderKind(name, KINDS[name])),
  ].join('\n\n');
}

function renderKind(name: KindName, kind: KindDefinition): string[] {
  const root = buildCrd(kind).spec.versions[0]?.schema.openAPIV3Schema as Schema | undefined;
  const { spec = {}, status = {} } = root?.properties ?? {};
  const scope = kind.scope === 'Cluster' ? 'cluster-scoped' : 'namespaced';
  const rules = rulesOf({ ...root, properties: { spec } });
  return [
    `## ${name}`,
    escapeMarkup(kind.description),
    `Scope: ${scope}. Resource: \`${kind.plural}\` (short name \`${kind.shortNames.join('`, `')}\`, category \`${kind.categories.join('`, `')}\`). Field selectors: ${selectorsOf(kind)}.`,
    '### Spec',
    table(['Field', 'Type', 'Description'], fieldsOf('spec', spec)),
    ...(rules.length === 0
      ? []
      : ['In addition, these validation rules apply:', rules.map(rule => `- ${rule}`).join('\n')]),
    '### Status',
    table(['Field', 'Type', 'Description'], fieldsOf('status', withoutConditions(status))),
    '### Conditions',
    table(
      CONDITION_HEAD,
      conditionsOf(name).filter(row => !isShared(row)),
    ),
  ];
}

/** Returns the fields that can be used with the option `--field-selector`. */
function selectorsOf({ selectableFields = [] }: KindDefinition): string {
  return selectableFields.map(path => `\`${path.slice(1)}\``).join(', ');
}

/** Removes the conditions because they have a separate table and use the same fields in every kind. */
function withoutConditions(status: Schema): Schema {
  const { conditions: _, ...properties } = status.properties ?? {};
  return { ...status, properties };
}

/** Returns whether all kinds have the same row. */
function isShared(row: Row): boolean {
  const text = row.join();
  return (Object.keys(KINDS) as KindName[]).every(name => conditionsOf(name).some(other => other.join() === text));
}

function conditionsOf(name: KindName): Row[] {
  return Object.entries(CONDITION_MEANING[name]).flatMap(([type, reasons]) =>
    Object.entries<string>(reasons).map(([reason, meaning]): Row => {
      const [, status = '', text = meaning] = /^((?:True|False|Unknown)(?:, False)?): (.*)$/.exec(meaning) ?? [];
      return [`\`${type}\``, status, `\`${reason}\``, text];
    }),
  );
}

function fieldsOf(path: string, schema: Schema): Row[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, child]) => {
    const at = `${path}.${name}`;
    const required = schema.required?.includes(name) === true;
    return [[`\`${at}\``, typeOf(child, required), child.description ?? ''], ...below(at, child)];
  });
}

function below(path: string, schema: Schema): Row[] {
  if (schema.items !== undefined) return fieldsOf(`${path}[]`, schema.items);
  if (schema.additionalProperties !== undefined) return fieldsOf(`${path}.<name>`, schema.additionalProperties);
  return fieldsOf(path, schema);
}

function typeOf(schema: Schema, required: boolean): string {
  return [
    schema.enum === undefined ? nameOf(schema) : schema.enum.map(value => `\`${value}\``).join(' or '),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(schema.minimum, schema.maximum, ''),
    range(schema.minItems, schema.maxItems, ' entries'),
    schema.default === undefined ? undefined : `default \`${JSON.stringify(schema.default)}\``,
    required ? '**required**' : undefined,
  ]
    .filter(part => part !== undefined)
    .join(', ');
}

function nameOf(schema: Schema): string {
  if (schema.items !== undefined) return `list of ${schema.items.type}`;
  return schema.additionalProperties === undefined
    ? (schema.type ?? 'any')
    : `map of ${schema.additionalProperties.type}`;
}

function range(least: number | undefined, most: number | undefined, unit: string): string | undefined {
  if (most === undefined) return least === undefined ? undefined : `at least ${least}${unit}`;
  return least === undefined ? `at most ${most}${unit}` : `${least} to ${most}${unit}`;
}

/** Returns the messages of all CEL rules. Starts with the fields that a message applies to unless it names its field. */
function rulesOf(root: Schema): string[] {
  const fields = new Map<string, string[]>();
  function collect(path: string, schema: Schema): void {
    for (const { message } of schema['x-kubernetes-validations'] ?? []) {
      fields.set(message, [...(fields.get(message) ?? []), ...(message.startsWith('must ') ? [`\`${path}\``] : [])]);
    }
    for (const [name, child] of Object.entries(schema.properties ?? {}))
      collect(path ? `${path}.${name}` : name, child);
    if (schema.items !== undefined) collect(`${path}[]`, schema.items);
    if (schema.additionalProperties !== undefined) collect(`${path}.<name>`, schema.additionalProperties);
  }
  collect('', root);
  return [...fields].map(([message, paths]) =>
    paths.length === 0 ? escapeMarkup(message) : `${paths.join(', ')}: ${escapeMarkup(message)}`,
  );
}

import { CONDITION_MEANING } from '../../../src/api/condition-reasons.ts';
import { buildCrd } from '../../../src/api/crd.ts';
import { GROUP, VERSION } from '../../../src/api/group-version.ts';
import type { KindDefinition } from '../../../src/api/kind.ts';
import { KINDS, type KindName } from '../../../src/api/kinds/kinds.ts';
import { escapeMarkup, type Row, table } from '../markdown.ts';

/** The part of a structural schema that the page shows. */
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

/** Renders docs/kinds.md: every field, rule and condition of every kind. */
export function renderKinds(): string {
  const names = Object.keys(KINDS) as KindName[];
  return [
    '# The kinds',
    `API group and version \`${GROUP}/${VERSION}\`. \`kubectl get waas\` lists the namespaced kinds, \`kubectl get waas-admin\` those of the cluster; \`kubectl explain <kind>.spec\` prints the same descriptions.`,
    'Every object name is a DNS label of at most 63 characters, without dots. Lists are replaced as a whole. Durations are written as `5s`, `30m`, `168h`.',
    'Every status has `conditions` as Kubernetes writes them, with `observedGeneration`. If a meaning begins with True, False or Unknown, that is the status of the condition. `Ready=True`: the object is applied, also when it closes something. The other conditions describe the effect. `Reconciling` and `Stalled` are present only while True.',
    'An object that names a missing object waits for it: `Ready=Unknown` with `Reconciling`. After five minutes it fails (`Ready=False` with `Stalled` and the same reason). It resumes when the object appears. An object that waits for a person, for example for a grant or an open invitation, never fails.',
    'During a Redis outage, applied objects keep their conditions, and changed objects have the reason `RedisUnavailable`. After a minute each Workspace has `DataPlaneReachable=False`.',
    names.map(name => `- [${name}](#${name.toLowerCase()})`).join('\n'),
    '## Reasons of every kind',
    table(['Type', 'Reason', 'Meaning'], conditionsOf('Account').filter(isShared)),
    ...names.flatMap(name => renderKind(name, KINDS[name])),
  ].join('\n\n');
}

function renderKind(name: KindName, kind: KindDefinition): string[] {
  const root = buildCrd(kind).spec.versions[0]?.schema.openAPIV3Schema as Schema | undefined;
  const { spec = {}, status = {} } = root?.properties ?? {};
  const scope = kind.scope === 'Cluster' ? 'of the cluster' : 'in a namespace';
  const rules = rulesOf({ ...root, properties: { spec } });
  return [
    `## ${name}`,
    escapeMarkup(kind.description),
    `\`kubectl get ${kind.plural}\`, short \`${kind.shortNames.join('`, `')}\`; ${scope}; category \`${kind.categories.join('`, `')}\`.`,
    '### Spec',
    table(['Field', 'Type', 'Meaning'], fieldsOf('spec', spec)),
    ...(rules.length === 0 ? [] : ['Rules beyond the types:', rules.map(rule => `- ${escapeMarkup(rule)}`).join('\n')]),
    '### Status',
    table(['Field', 'Type', 'Meaning'], fieldsOf('status', withoutConditions(status))),
    '### Conditions',
    table(
      ['Type', 'Reason', 'Meaning'],
      conditionsOf(name).filter(row => !isShared(row)),
    ),
  ];
}

/** Drops the conditions: they have their own table, and the same fields in every kind. */
function withoutConditions(status: Schema): Schema {
  const { conditions: _, ...properties } = status.properties ?? {};
  return { ...status, properties };
}

/** Returns whether every kind has the same row. */
function isShared(row: Row): boolean {
  const text = row.join();
  return (Object.keys(KINDS) as KindName[]).every(name => conditionsOf(name).some(other => other.join() === text));
}

function conditionsOf(name: KindName): Row[] {
  return Object.entries(CONDITION_MEANING[name]).flatMap(([type, reasons]) =>
    Object.entries<string>(reasons).map(([reason, meaning]): Row => [`\`${type}\``, `\`${reason}\``, meaning]),
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

/** Returns the messages of all CEL rules at and below a node, each once. */
function rulesOf(schema: Schema): string[] {
  const children = [...Object.values(schema.properties ?? {}), schema.items, schema.additionalProperties];
  const own = (schema['x-kubernetes-validations'] ?? []).map(({ message }) => message);
  return [...new Set([...own, ...children.flatMap(child => (child === undefined ? [] : rulesOf(child)))])];
}

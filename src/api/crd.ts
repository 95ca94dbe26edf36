import { z } from 'zod';
import { NEW_STATUS } from './conditions.ts';
import { GROUP, VERSION } from './group-version.ts';
import { conditionColumn, type KindDefinition, type PrinterColumn } from './kind.ts';
import type { CelRule } from './rules.ts';

const READY_COLUMN = conditionColumn('Ready', 'Ready', 'status', 'Indicates whether the object has been applied.');
const REASON_COLUMN = conditionColumn('Reason', 'Ready', 'reason', 'The reason for the Ready condition.');
const LAST_COLUMNS: readonly PrinterColumn[] = [
  {
    name: 'ID',
    type: 'string',
    jsonPath: '.status.publicId',
    description: 'The public id used in the REST API.',
    priority: 1,
  },
  {
    name: 'Age',
    type: 'date',
    jsonPath: '.metadata.creationTimestamp',
    description: 'The time elapsed since the object was created.',
  },
];

function columnsOf({ columns, reasonPath, columnsBehind = [] }: KindDefinition): PrinterColumn[] {
  const description = 'The reason for Ready, or the reason why events are not flowing if Ready is True.';
  const reason = reasonPath === undefined ? REASON_COLUMN : { ...REASON_COLUMN, jsonPath: reasonPath, description };
  return [...columns, READY_COLUMN, reason, ...columnsBehind, ...LAST_COLUMNS];
}

// Object names end up in Redis keys and in paths. You can't refer to metadata in a fieldPath.
const NAME_RULE: CelRule = {
  rule: "self.metadata.name.size() <= 63 && !self.metadata.name.contains('.')",
  message: 'metadata.name must be a DNS label with at most 63 lowercase letters, digits and hyphens, and without dots',
};

/**
 * Builds the CustomResourceDefinition for the given kind as plain data with a stable order. Any validation not
 * supported by structural schemas is left to the CEL rules in rules.ts.
 */
export function buildCrd(kind: KindDefinition) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${GROUP}`, labels: { 'app.kubernetes.io/name': 'sluice' } },
    spec: {
      group: GROUP,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.singular,
        shortNames: [...kind.shortNames],
        categories: [...kind.categories],
      },
      scope: kind.scope,
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: { status: {} },
          ...(kind.selectableFields && { selectableFields: kind.selectableFields.map(jsonPath => ({ jsonPath })) }),
          additionalPrinterColumns: columnsOf(kind),
          schema: { openAPIV3Schema: objectSchema(kind) },
        },
      ],
    },
  };
}

function objectSchema(kind: KindDefinition) {
  return {
    description: kind.description,
    type: 'object',
    required: ['spec'],
    'x-kubernetes-validations': [NAME_RULE, ...(kind.rules ?? [])],
    properties: {
      apiVersion: { description: `API version of this object. Must be ${GROUP}/${VERSION}.`, type: 'string' },
      kind: { description: `The kind of this object. Must be ${kind.kind}.`, type: 'string' },
      metadata: { type: 'object' },
      spec: specSchema(kind.spec),
      status: structuralSchema(kind.status.meta({ default: NEW_STATUS })),
    },
  };
}

// When server-side apply removes an object's last field, the value becomes null. We use a default to turn null into {}
// before the rules run so that users will see the message of the rule. Note that a default must be valid.
function specSchema(spec: z.ZodType): object {
  return structuralSchema(spec.safeParse({}).success ? spec.meta({ default: {} }) : spec);
}

/** Converts a zod schema to a structural schema. `io: 'input'` makes fields with a default optional. */
function structuralSchema(schema: z.ZodType): object {
  return orderedNode(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input' }));
}

const FIRST = ['description', 'type', 'format', 'enum', 'default'];
const LAST = ['x-kubernetes-validations', 'required', 'items', 'properties'];

function rank(keyword: string): number {
  return FIRST.includes(keyword) ? FIRST.indexOf(keyword) : FIRST.length + 1 + LAST.indexOf(keyword);
}

// zod's keyword order depends on how a schema was built. Sort the keywords to keep the diffs of the CRDs small.
function orderedNode(node: object): object {
  const keywords = Object.entries(node).filter(([keyword]) => keyword !== 'pattern' || !isPatternInRules(node));
  const entries = keywords.toSorted(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([keyword, value]) => [keyword, orderedKeyword(keyword, value)]));
}

/**
 * Returns true if the pattern is already checked by one of the CEL rules. In this case, the message of the CEL rule is
 * more helpful.
 */
function isPatternInRules(node: {
  readonly pattern?: string;
  readonly 'x-kubernetes-validations'?: readonly CelRule[];
}) {
  return node['x-kubernetes-validations']?.some(({ rule }) => rule === `self.matches(r"${node.pattern}")`) === true;
}

// Keep fields in schema order.
function orderedKeyword(keyword: string, value: unknown): unknown {
  if (!isObject(value)) return value;
  if (keyword === 'items' || keyword === 'additionalProperties') return orderedNode(value);
  if (keyword !== 'properties') return value;
  return Object.fromEntries(
    Object.entries(value).map(([field, node]) => [field, isObject(node) ? orderedNode(node) : node]),
  );
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

import { z } from 'zod';
import { API_VERSION } from './group-version.ts';
import type { CelRule } from './rules.ts';

/** A `kubectl get` column, shown before those common to all kinds. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'boolean' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /** A column with a priority of 0 (the default) is always shown. Use 1 to only show it with `-o wide`. */
  priority?: number;
}

/**
 * The `metadata` fields used by Sluice. We leave them out of the CRDs because the API server already knows the schema
 * of metadata.
 */
const ObjectMeta = z.object({
  name: z.string(),
  uid: z.string(),
  resourceVersion: z.string(),
  generation: z.number(),
  creationTimestamp: z.string(),
  deletionTimestamp: z.string().optional(),
  labels: z.record(z.string(), z.string()).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
  finalizers: z.array(z.string()).optional(),
});

/** The `metadata` to use for namespaced kinds. */
const NamespacedMeta = ObjectMeta.extend({ namespace: z.string() });

const META = { Namespaced: NamespacedMeta, Cluster: ObjectMeta } as const;

// Users who can only read a single namespace should still be able to run `kubectl get waas`.
const CATEGORY: Record<keyof typeof META, string> = { Namespaced: 'waas', Cluster: 'waas-admin' };

/** The definition of a kind. Each kind has its own file. */
interface KindSource<K extends string, Sc extends keyof typeof META, S extends z.ZodType, T extends z.ZodType> {
  kind: K;
  /** Used for the CRD's name and in the API server's REST paths. */
  plural: string;
  shortNames: readonly string[];
  scope: Sc;
  /** Displayed as the first paragraph of `kubectl explain <kind>`. */
  description: string;
  spec: S;
  status: T;
  /** Validation rules for the whole object, in addition to the rule for its name. */
  rules?: readonly CelRule[];
  columns: readonly PrinterColumn[];
  /** JSON path of the REASON column. Defaults to the reason of Ready. */
  reasonPath?: string;
  /** The columns displayed after REASON. */
  columnsBehind?: readonly PrinterColumn[];
  /** JSON paths that can be used in field selectors for lists and watches, in addition to the public id. */
  selectableFields?: readonly string[];
}

/** The field used by the facade to look up objects. */
const PUBLIC_ID_FIELD = '.status.publicId';

/**
 * Completes the definition of a kind. The `schema` of the definition parses objects from the API server, removing
 * unknown fields and setting defaults.
 */
export function defineKind<
  const K extends string,
  Sc extends keyof typeof META,
  S extends z.ZodType,
  T extends z.ZodType,
>(source: KindSource<K, Sc, S, T>) {
  return {
    ...source,
    singular: source.kind.toLowerCase(),
    categories: [CATEGORY[source.scope]],
    selectableFields: [...(source.selectableFields ?? []), PUBLIC_ID_FIELD],
    schema: z.object({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal(source.kind),
      metadata: META[source.scope],
      spec: source.spec,
      status: source.status.optional(),
    }),
  };
}

/** Any kind. Can be used if you need to iterate over all of the kinds. */
export interface KindDefinition extends KindSource<string, 'Namespaced' | 'Cluster', z.ZodType, z.ZodType> {
  singular: string;
  categories: readonly string[];
  schema: z.ZodType;
}

/** Returns a column that shows the status or the reason of a condition. */
export function conditionColumn(
  name: string,
  type: string,
  show: 'status' | 'reason',
  description: string,
): PrinterColumn {
  return { name, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].${show}`, description };
}

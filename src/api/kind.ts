import { z } from 'zod';
import { API_VERSION } from './group-version.ts';
import { NamespacedMeta, ObjectMeta } from './object-meta.ts';
import type { CelRule } from './rules.ts';

/** A column that `kubectl get` shows before the common columns of all kinds. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'boolean' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /**
   * The column is always shown if the value is 0, which is the default. If the value is 1, it is only shown with `-o
   * wide`.
   */
  priority?: number;
}

const META = { Namespaced: NamespacedMeta, Cluster: ObjectMeta } as const;

// `kubectl get waas` must not fail for users who can only read one namespace.
const CATEGORY: Record<keyof typeof META, string> = { Namespaced: 'waas', Cluster: 'waas-admin' };

/** The definition of a kind, as written in its file. */
interface KindSource<K extends string, Sc extends keyof typeof META, S extends z.ZodType, T extends z.ZodType> {
  kind: K;
  /** Used in the name of the CRD and in the REST paths of the API server. */
  plural: string;
  shortNames: readonly string[];
  scope: Sc;
  /** The first paragraph of `kubectl explain <kind>`. */
  description: string;
  spec: S;
  status: T;
  /** Validation rules for the whole object, in addition to the rule for its name. */
  rules?: readonly CelRule[];
  columns: readonly PrinterColumn[];
  /** The JSON path of the REASON column. Defaults to the reason of Ready. */
  reasonPath?: string;
  /** The columns after REASON. */
  columnsBehind?: readonly PrinterColumn[];
  /** The JSON paths of field selectors for lists and watches. */
  selectableFields?: readonly string[];
}

/**
 * Completes the definition of a kind. The `schema` parses objects from the API server. It removes unknown fields and
 * sets defaults.
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
    schema: z.object({
      apiVersion: z.literal(API_VERSION),
      kind: z.literal(source.kind),
      metadata: META[source.scope],
      spec: source.spec,
      status: source.status.optional(),
    }),
  };
}

/** Any kind, for code that iterates over all kinds. */
export interface KindDefinition extends KindSource<string, 'Namespaced' | 'Cluster', z.ZodType, z.ZodType> {
  singular: string;
  categories: readonly string[];
  schema: z.ZodType;
}

/** Returns a column for the status or the reason of a condition. */
export function conditionColumn(
  name: string,
  type: string,
  show: 'status' | 'reason',
  description: string,
): PrinterColumn {
  return { name, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].${show}`, description };
}

import { z } from 'zod';
import { API_VERSION } from './group-version.ts';
import { NamespacedMeta, ObjectMeta } from './object-meta.ts';
import type { CelRule } from './rules.ts';

/** A column that `kubectl get` prints before the columns of every kind. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'boolean' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /** 0 (default): always shown; 1: only with `-o wide`. */
  priority?: number;
}

const META = { Namespaced: NamespacedMeta, Cluster: ObjectMeta } as const;

// `kubectl get waas` must not fail for users who may read only one namespace.
const CATEGORY: Record<keyof typeof META, string> = { Namespaced: 'waas', Cluster: 'waas-admin' };

/** The definition of a kind, as its file writes it. */
interface KindSource<K extends string, Sc extends keyof typeof META, S extends z.ZodType, T extends z.ZodType> {
  kind: K;
  /** Used in the name of the CRD and in REST paths of the API server. */
  plural: string;
  shortNames: readonly string[];
  scope: Sc;
  /** The first text of `kubectl explain <kind>`. */
  description: string;
  spec: S;
  status: T;
  /** Rules over the whole object, in addition to the one for its name. */
  rules?: readonly CelRule[];
  columns: readonly PrinterColumn[];
  /** JSON path of the column REASON; absent: the reason of Ready. */
  reasonPath?: string;
  /** Columns after REASON. */
  columnsBehind?: readonly PrinterColumn[];
  /** JSON paths for field selectors of lists and watches. */
  selectableFields?: readonly string[];
}

/**
 * Completes the definition of a kind. `schema` parses an object as the API server returns it: it drops unknown fields
 * and fills in defaults.
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

/** Any kind, for code that iterates over all of them. */
export interface KindDefinition extends KindSource<string, 'Namespaced' | 'Cluster', z.ZodType, z.ZodType> {
  singular: string;
  categories: readonly string[];
  schema: z.ZodType;
}

/** Returns the column for the status or reason of a condition. */
export function conditionColumn(
  name: string,
  type: string,
  show: 'status' | 'reason',
  description: string,
): PrinterColumn {
  return { name, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].${show}`, description };
}

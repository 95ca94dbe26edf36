import { z } from 'zod';
import { API_VERSION } from './group-version.ts';
import { NamespacedMeta, ObjectMeta } from './object-meta.ts';
import type { CelRule } from './rules.ts';

/** A column that `kubectl get` prints, before those that every kind has. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'boolean' | 'integer' | 'date';
  jsonPath: string;
  description: string;
  /** 0 (absent) is always shown, 1 with `-o wide`. */
  priority?: number;
}

const META = { Namespaced: NamespacedMeta, Cluster: ObjectMeta } as const;

// `kubectl get waas` must not fail for somebody who may read one namespace only.
const CATEGORY: Record<keyof typeof META, string> = { Namespaced: 'waas', Cluster: 'waas-admin' };

/** What the author of a kind writes down. */
export interface KindSource<K extends string, Sc extends keyof typeof META, S extends z.ZodType, T extends z.ZodType> {
  kind: K;
  /** In the CRD's name and in REST paths of the API server. */
  plural: string;
  shortNames: readonly string[];
  scope: Sc;
  /** What `kubectl explain <kind>` says first. */
  description: string;
  spec: S;
  status: T;
  /** Rules over the whole object, beside the one about its name. */
  rules?: readonly CelRule[];
  columns: readonly PrinterColumn[];
  /** Of the column REASON; absent: the reason of Ready. */
  reasonPath?: string;
  /** Columns behind REASON. */
  columnsBehind?: readonly PrinterColumn[];
  /** JSON paths that field selectors and watches may select by. */
  selectableFields?: readonly string[];
}

/**
 * A kind: what its author wrote, and what follows from it. `schema` parses an object as the API server returns it:
 * fields that are not known are dropped, schema defaults filled in.
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

/** Any kind, for those who iterate over all of them. */
export interface KindDefinition extends KindSource<string, 'Namespaced' | 'Cluster', z.ZodType, z.ZodType> {
  singular: string;
  categories: readonly string[];
  schema: z.ZodType;
}

/** The column of one condition's status or reason. */
export function conditionColumn(
  name: string,
  type: string,
  show: 'status' | 'reason',
  description: string,
): PrinterColumn {
  return { name, type: 'string', jsonPath: `.status.conditions[?(@.type=="${type}")].${show}`, description };
}

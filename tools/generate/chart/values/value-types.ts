import { z } from 'zod';

/** A network in CIDR notation, e.g. 10.0.0.0/8. The template `validate.yaml` checks the numbers. */
export const NETWORK = /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/;

/** A group of values. Misspelled keys in the group are refused. */
export function section<const Shape extends z.core.$ZodLooseShape>(description: string, shape: Shape) {
  return z
    .strictObject(shape)
    .prefault({} as never)
    .describe(description);
}

export function text(description: string, fallback = '', pattern?: { readonly regex: RegExp; readonly rule: string }) {
  const checked = pattern === undefined ? z.string() : z.string().regex(pattern.regex, pattern.rule);
  return checked.default(fallback).describe(description);
}

/** A list of plain values. */
export function list<Item extends z.ZodType<string | number>>(
  item: Item,
  description: string,
  fallback: readonly z.output<Item>[] = [],
) {
  return z
    .array(item)
    .default([...fallback] as never)
    .describe(description);
}

/** A list of ports for a rule. An empty list would allow every port. */
export function ports(description: string, fallback: readonly number[]) {
  return z
    .array(z.int().min(1).max(65_535))
    .min(1)
    .default([...fallback])
    .describe(description);
}

/** A Kubernetes object, whose keys are validated by the API server. */
export function openObject(description: string, fallback: Readonly<Record<string, unknown>> = {}) {
  return z
    .record(z.string(), z.unknown())
    .default({ ...fallback })
    .describe(description);
}

/** An object whose values are text, such as labels. Without quotes, YAML reads `true` and `1` as other types. */
export function textObject(description: string, fallback: Readonly<Record<string, string>> = {}) {
  return z
    .record(z.string(), z.string())
    .default({ ...fallback })
    .describe(description);
}

/** A list of objects in the format of Kubernetes. */
export function openList(description: string) {
  return z.array(z.record(z.string(), z.unknown())).default([]).describe(description);
}

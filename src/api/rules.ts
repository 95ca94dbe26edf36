import type { z } from 'zod';

/** One entry of `x-kubernetes-validations`: CEL over `self` and, in transition rules, `oldSelf`. */
export interface CelRule {
  /** CEL expression that must be true. */
  rule: string;
  /** Error message if it is false. */
  message: string;
  /** Field that the message is about, relative to the rule's schema, for example `.name`. */
  fieldPath?: string;
}

declare module 'zod' {
  interface GlobalMeta {
    'x-kubernetes-validations'?: readonly CelRule[];
  }
}

function addRules<S extends z.ZodType>(schema: S, rules: readonly CelRule[]): S {
  const before = schema.meta()?.['x-kubernetes-validations'] ?? [];
  return schema.meta({ 'x-kubernetes-validations': [...before, ...rules] });
}

/**
 * Adds a rule about a value, written twice: `holds` for zod, `rule` in CEL for the API server. Always give both: JSON
 * Schema silently drops zod's refinements.
 */
export function withRule<S extends z.ZodType>(
  schema: S,
  rule: CelRule & { holds: (value: z.output<S>) => boolean },
): S {
  const { holds, ...cel } = rule;
  return addRules(schema.refine(holds, { error: cel.message }), [cel]);
}

/** Adds rules about a change, which only the API server can check, to the parent of the fields that they are about. */
export function withTransitions<S extends z.ZodType>(schema: S, ...rules: CelRule[]): S {
  return addRules(schema, rules);
}

/** Returns the rule that a required field never changes. */
export function immutable(field: string): CelRule {
  return { rule: `self.${field} == oldSelf.${field}`, message: `${field} is immutable`, fieldPath: `.${field}` };
}

/**
 * Returns the rule that an optional field never changes once it is set. The rule is for the parent: on the field
 * itself, removing the field and adding it again would pass.
 */
export function immutableOnceSet(field: string): CelRule {
  return {
    rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
    message: `${field} is immutable once set`,
    fieldPath: `.${field}`,
  };
}

/** Returns the rule that an optional boolean goes from false (or absent) to true and never back. */
export function oneWay(field: string): CelRule {
  return {
    rule: `!oldSelf.?${field}.orValue(false) || self.?${field}.orValue(false)`,
    message: `${field} is one-way: once true, it cannot be taken back`,
    fieldPath: `.${field}`,
  };
}

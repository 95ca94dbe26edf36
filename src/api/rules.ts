import type { z } from 'zod';

/** An entry of `x-kubernetes-validations` with a CEL expression over `self`. Transition rules also use `oldSelf`. */
export interface CelRule {
  /** The CEL expression that must be true. */
  rule: string;
  /** The error message if the expression is false. */
  message: string;
  /** The field that the message refers to, relative to the schema of the rule. For example, `.name`. */
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
 * Adds a validation rule for a value. The function `holds` is used by zod, and the CEL expression `rule` is used by the
 * API server. You must provide both, because refinements in zod are not included in the JSON Schema.
 */
export function withRule<S extends z.ZodType>(
  schema: S,
  rule: CelRule & { holds: (value: z.output<S>) => boolean },
): S {
  const { holds, ...cel } = rule;
  return addRules(schema.refine(holds, { error: cel.message }), [cel]);
}

/**
 * Adds transition rules to the parent of the fields that they validate. Only the API server can check transition rules.
 */
export function withTransitions<S extends z.ZodType>(schema: S, ...rules: CelRule[]): S {
  return addRules(schema, rules);
}

/** Returns a rule that makes a required field immutable. */
export function immutable(field: string): CelRule {
  return { rule: `self.${field} == oldSelf.${field}`, message: `${field} is immutable`, fieldPath: `.${field}` };
}

/**
 * Returns a rule that makes an optional field immutable after it is set. You must add the rule to the parent of the
 * field. Otherwise, users could remove the field and add it again.
 */
export function immutableOnceSet(field: string): CelRule {
  return {
    rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
    message: `${field} is immutable after it is set`,
    fieldPath: `.${field}`,
  };
}

/** Returns a rule that prevents an optional boolean from changing from true to false. */
export function oneWay(field: string): CelRule {
  return {
    rule: `!oldSelf.?${field}.orValue(false) || self.?${field}.orValue(false)`,
    message: `${field} cannot be changed back to false after it is set to true`,
    fieldPath: `.${field}`,
  };
}

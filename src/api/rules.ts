import type { z } from 'zod';

/**
 * An entry in `x-kubernetes-validations`. The entry contains a CEL expression, which can use `self`. Transition rules
 * can also use `oldSelf`.
 */
export interface CelRule {
  /** CEL expression that must be true. */
  rule: string;
  /** Error message for when the expression is false. */
  message: string;
  /** The field that the message is about, relative to the rule's schema. For example, `.name`. */
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
 * Adds a validation rule to the given schema. You'll need to provide both `holds`, for zod, and the CEL expression
 * `rule`, for the API server because zod doesn't include refinements in the JSON Schema.
 */
export function withRule<S extends z.ZodType>(
  schema: S,
  rule: CelRule & { holds: (value: z.output<S>) => boolean },
): S {
  const { holds, ...cel } = rule;
  return addRules(schema.refine(holds, { error: cel.message }), [cel]);
}

/**
 * Adds a pattern to the given schema. In the API server we use a CEL rule instead, since its error contains the message.
 * The error of a pattern only contains the regular expression.
 */
export function withPattern(schema: z.ZodString, pattern: RegExp, message: string): z.ZodString {
  const { source } = pattern;
  const rule = `self.matches(r"${source}")`;
  return withRule(schema.meta({ pattern: source }), { rule, message, holds: value => pattern.test(value) });
}

/** Adds transition rules to the parent of the fields they validate. Only the API server can check transition rules. */
export function withTransitions<S extends z.ZodType>(schema: S, ...rules: CelRule[]): S {
  return addRules(schema, rules);
}

/** Returns a rule to make a required field immutable. */
export function immutable(field: string): CelRule {
  return { rule: `self.${field} == oldSelf.${field}`, message: `${field} is immutable`, fieldPath: `.${field}` };
}

/**
 * Returns a rule to make an optional field immutable once set. Must be added to the parent of the field. On the field
 * itself, users could remove the field and add it again.
 */
export function immutableOnceSet(field: string): CelRule {
  return {
    rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
    message: `${field} is immutable after it is set`,
    fieldPath: `.${field}`,
  };
}

/** Returns a rule to prevent an optional boolean from going back from true to false. */
export function oneWay(field: string): CelRule {
  return {
    rule: `!oldSelf.?${field}.orValue(false) || self.?${field}.orValue(false)`,
    message: `${field} cannot be changed back to false after it is set to true`,
    fieldPath: `.${field}`,
  };
}

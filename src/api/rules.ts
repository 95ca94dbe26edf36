import type { z } from 'zod';

/** One entry of `x-kubernetes-validations`: CEL over `self`, and in transition rules `oldSelf`. */
export interface CelRule {
  /** CEL expression that has to be true. */
  rule: string;
  /** What the user reads when it is not. */
  message: string;
  /** The field that the message is about, relative to where the rule stands, as in `.name`. */
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
 * A rule about a value, said twice: `holds` for zod, `rule` in CEL for the API server. JSON Schema drops zod's
 * refinements without a word, so neither may be written without the other.
 */
export function withRule<S extends z.ZodType>(
  schema: S,
  rule: CelRule & { holds: (value: z.output<S>) => boolean },
): S {
  const { holds, ...cel } = rule;
  return addRules(schema.refine(holds, { error: cel.message }), [cel]);
}

/** Rules about a change, which only the API server can check. They stand on the parent of the fields they are about. */
export function withTransitions<S extends z.ZodType>(schema: S, ...rules: CelRule[]): S {
  return addRules(schema, rules);
}

/** A required field that never changes. */
export function immutable(field: string): CelRule {
  return { rule: `self.${field} == oldSelf.${field}`, message: `${field} is immutable`, fieldPath: `.${field}` };
}

/**
 * An optional field that never changes once it is set. The rule is for the parent: on the field itself, taking the
 * field away and adding it again would pass.
 */
export function immutableOnceSet(field: string): CelRule {
  return {
    rule: `!has(oldSelf.${field}) || (has(self.${field}) && self.${field} == oldSelf.${field})`,
    message: `${field} is immutable once set`,
    fieldPath: `.${field}`,
  };
}

/** An optional boolean that goes from false (or absent) to true and never back. */
export function oneWay(field: string): CelRule {
  return {
    rule: `!oldSelf.?${field}.orValue(false) || self.?${field}.orValue(false)`,
    message: `${field} is one-way: once true, it cannot be taken back`,
    fieldPath: `.${field}`,
  };
}

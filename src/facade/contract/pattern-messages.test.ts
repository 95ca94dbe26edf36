import { expect, test } from 'vitest';
import type { z } from 'zod';
import { ROUTES } from '../routes.ts';

interface Check {
  readonly _zod: { readonly def: { readonly check: string; readonly pattern?: RegExp; readonly error?: unknown } };
}

/** The parts of a zod schema that are used to find all schemas within it. */
interface Definition {
  readonly checks?: readonly Check[];
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly options?: readonly z.ZodType[];
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly in?: z.ZodType;
}

/** Returns the patterns in a schema that do not have a message. */
function patternsWithoutMessage(schema: z.ZodType | undefined): readonly string[] {
  if (schema === undefined) return [];
  const definition = schema._zod.def as Definition;
  const { shape = {}, options = [], innerType, element } = definition;
  const own = [schema as unknown as Check, ...(definition.checks ?? [])].flatMap(({ _zod: { def } }) =>
    def.check === 'string_format' && def.error === undefined ? [String(def.pattern)] : [],
  );
  const within = [...Object.values(shape), ...options, innerType, element, definition.in];
  return [...own, ...within.flatMap(patternsWithoutMessage)];
}

test('all patterns of requests have a message that describes the expected value', () => {
  const missing = ROUTES.flatMap(({ operation, body, query }) =>
    [body, query].flatMap(schema => patternsWithoutMessage(schema).map(pattern => `${operation}: ${pattern}`)),
  );
  expect(missing).toEqual([]);
});

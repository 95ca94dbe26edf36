import { z } from 'zod';

/** What JSON Schema says of an integer, beside the words. */
interface Documented {
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
  readonly example?: number;
}

/**
 * Returns the schema of a query parameter that is a decimal number without sign or leading zeros. Queries are text, so
 * the pattern decides what is taken; documents say `integer`, which is what it is to a client.
 */
export function queryInteger(pattern: RegExp, fault: string, documented: Documented) {
  return z
    .string()
    .regex(pattern, fault)
    .transform(Number)
    .optional()
    .meta({ type: 'integer', ...documented });
}

import { z } from 'zod';

/** JSON Schema keywords of an integer. */
interface Documented {
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
  readonly example?: number;
}

/**
 * Returns the schema of a query parameter that is a decimal number without sign or leading zeros. Queries are text, so
 * the pattern decides what is valid. OpenAPI documents it as `integer`.
 */
export function queryInteger(pattern: RegExp, fault: string, documented: Documented) {
  return z
    .string()
    .regex(pattern, fault)
    .transform(Number)
    .optional()
    .meta({ type: 'integer', ...documented });
}

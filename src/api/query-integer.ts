import { z } from 'zod';

/** The JSON Schema keywords of an integer. */
interface Documented {
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
  readonly example?: number;
}

/**
 * Returns the schema of a query parameter that is a decimal number without a sign or leading zeros. Query parameters
 * are strings, so a pattern validates the value. In OpenAPI, the type is `integer`.
 */
export function queryInteger(pattern: RegExp, fault: string, documented: Documented) {
  return z
    .string()
    .regex(pattern, fault)
    .transform(Number)
    .optional()
    .meta({ type: 'integer', ...documented });
}

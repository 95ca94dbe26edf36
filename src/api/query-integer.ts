import { z } from 'zod';

/** JSON Schema keywords for an integer. */
interface Documented {
  readonly minimum: number;
  readonly maximum: number;
  readonly description: string;
  readonly example?: number;
}

/**
 * Returns the schema for a query parameter that is a decimal number without a sign or leading zeros. The schema
 * validates the parameter using a pattern because query parameters are strings. In OpenAPI, the type is `integer`.
 */
export function queryInteger(pattern: RegExp, fault: string, documented: Documented) {
  return z
    .string()
    .regex(pattern, fault)
    .transform(Number)
    .optional()
    .meta({ type: 'integer', ...documented });
}

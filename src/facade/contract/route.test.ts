import { expect, test } from 'vitest';
import { z } from 'zod';
import { ROUTES } from '../routes.ts';
import { bodyLimitOf } from './route.ts';

interface Schema {
  readonly type?: string;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly enum?: readonly string[];
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
}

/** Returns the maximum number of JSON bytes for a value of the schema. Each character may be written as `\\uffff`. */
function mostBytes(schema: Schema): number {
  if (schema.anyOf !== undefined) return Math.max(...schema.anyOf.map(mostBytes));
  if (schema.properties !== undefined) {
    return Object.entries(schema.properties).reduce(
      (sum, [name, child]) => sum + name.length + 4 + mostBytes(child),
      2,
    );
  }
  if (schema.items !== undefined)
    return (schema.maxItems ?? Number.POSITIVE_INFINITY) * (mostBytes(schema.items) + 1) + 2;
  if (schema.type !== 'string') return 24;
  const characters = schema.maxLength ?? (schema.pattern || schema.enum ? 64 : Number.POSITIVE_INFINITY);
  return characters * 6 + 2;
}

test.each(ROUTES.filter(({ body }) => body !== undefined))(
  '$operation accepts every body that its schema accepts',
  route => {
    const schema = z.toJSONSchema(route.body as z.ZodType, { io: 'input', unrepresentable: 'any' }) as Schema;
    expect(mostBytes(schema)).toBeLessThanOrEqual(bodyLimitOf(route));
  },
);

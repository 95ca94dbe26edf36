import { isDeepStrictEqual } from 'node:util';
import { ROUTES } from '../../../src/facade/routes.ts';

const PATTERNS = ROUTES.map(route => ({
  route,
  pattern: new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`),
}));

/**
 * Throws if a successful response of a `/waas` call contains a field that its route does not document. Such a field
 * could belong to another audience, for example to the producer.
 */
export function expectDocumented(method: string, path: string, status: number, body: unknown): void {
  const [place = ''] = path.split('?');
  const found = PATTERNS.find(({ route, pattern }) => route.method === method && pattern.test(place));
  const schema = found?.route.answers[status]?.schema;
  if (schema === undefined) return;
  // The schemas of responses drop unknown fields, and change nothing else.
  const { success, data, error } = schema.safeParse(body);
  if (!success) throw new Error(`${method} ${path}: ${error.message}`);
  if (isDeepStrictEqual(data, body)) return;
  throw new Error(`${method} ${path} has fields that are not documented: ${JSON.stringify(body).slice(0, 1_000)}`);
}

import { expect, test } from 'vitest';
import { positionsOf } from '../../test/system/rest/support/authorization-matrix.ts';
import { describeRoutes } from './openapi.ts';
import { ROUTES } from './routes.ts';

interface Schema {
  readonly $ref?: string;
  readonly pattern?: string;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
}

const DOCUMENT = describeRoutes(ROUTES, '0.0.0');
const ID = /^\^(?:ten|cat|pkg|int|act|blk|sub|acc|evt)_/;

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.split('/').at(-1);
  return name === undefined ? schema : ((DOCUMENT.components?.schemas?.[name] ?? {}) as Schema);
}

/** Returns the names of the id fields, at any depth. */
function idsIn(given: Schema | undefined, at = ''): string[] {
  if (given === undefined) return [];
  const { pattern = '', items, properties = {}, anyOf = [], oneOf = [], allOf = [] } = resolve(given);
  return [
    ...(ID.test(pattern) ? [at] : []),
    ...[...anyOf, ...oneOf, ...allOf].flatMap(each => idsIn(each, at)),
    ...idsIn(items, `${at}[]`),
    ...Object.entries(properties).flatMap(([name, each]) => idsIn(each, at === '' ? name : `${at}.${name}`)),
  ];
}

test('the authorization matrix tests foreign ids in each place of a body or a query that accepts an id', () => {
  const places = ROUTES.flatMap(route => {
    const { requestBody, parameters = [] } = DOCUMENT.paths[route.path]?.[route.method.toLowerCase()] ?? {};
    const body = idsIn(requestBody?.content['application/json']?.schema as Schema | undefined);
    const query = parameters
      .filter(parameter => parameter.in === 'query')
      .flatMap(({ name, schema }) => idsIn(schema as Schema | undefined, name));
    const placed = (where: string) => (name: string) => ({ route, where, name });
    return [...body.map(placed('body')), ...query.map(placed('query'))];
  });
  expect(places.length).toBeGreaterThan(15);
  const missing = places.filter(
    ({ route, where, name }) =>
      !positionsOf(route).some(position => position.where === where && position.name === name),
  );
  expect(missing.map(({ route, where, name }) => `${route.operation} ${where} ${name}`)).toEqual([]);
});

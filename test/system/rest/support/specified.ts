import { expect } from 'vitest';
import { ROUTES } from '../../../../src/facade/routes.ts';
import type { Reply, RestClient } from '../../support/rest-client.ts';
import { ID_FORMS, unconventional } from './conventions.ts';
import { expectDeclared } from './declared-answer.ts';

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

/** A row of the specification's table of endpoints (part 4), with the response fields specified in part 2. */
export interface Row {
  readonly method: Method;
  readonly path: string;
  /** The body fields. Optional fields are in parentheses. */
  readonly sends: string;
  /** The status. If the table does not specify any, the rulings are used. */
  readonly status: number;
  /** The response fields and their formats. Undefined if the specification does not specify a body. */
  readonly answers?: Readonly<Record<string, RegExp>>;
}

const { cat, int, act, pkg } = ID_FORMS;
const STREAM = { publicId: cat, key: /^[a-z0-9-]+$/, status: /^(Published|Deprecated)$/ };
const INTEGRATION = { publicId: int, invitedEmail: /^[^@]+@[^@]+$/, status: /^Pending$/ };
const ACTIVATION = { publicId: act, groupKey: /./, status: /^(Active|Revoked)$/ };
const PACKAGE = { publicId: pkg, key: /^[a-z0-9-]+$/, name: /./, status: /^Active$/ };
const APPLIED = 'producerTenantPublicId name (description) (eventTypes) (payloadSchema) (isPublic)';
const PAIR = 'producerTenantPublicId groupKey integrationPublicId';
const PRODUCER = '/waas/producer/{tenant}';
const BLOCKS = `${PRODUCER}/integrations/{integration}/blocks`;

/** The rows of part 4 in order, as far as they apply to `/waas`. */
export const ROWS: readonly Row[] = [
  { method: 'PUT', path: '/waas/streams', sends: APPLIED, status: 200, answers: STREAM },
  { method: 'POST', path: '/waas/enable-producer', sends: 'producerTenantPublicId', status: 200 },
  { method: 'GET', path: `${PRODUCER}/catalog`, sends: '', status: 200 },
  { method: 'GET', path: `${PRODUCER}/metrics/series`, sends: '', status: 200 },
  {
    method: 'POST',
    path: '/waas/integrations',
    sends: 'producerTenantPublicId email',
    status: 201,
    answers: INTEGRATION,
  },
  { method: 'POST', path: '/waas/activations', sends: PAIR, status: 200, answers: ACTIVATION },
  { method: 'DELETE', path: '/waas/activations', sends: PAIR, status: 204 },
  { method: 'GET', path: `${PRODUCER}/integrations`, sends: '', status: 200 },
  { method: 'POST', path: `${PRODUCER}/packages`, sends: 'name (description)', status: 201, answers: PACKAGE },
  { method: 'PUT', path: `${PRODUCER}/packages/{pkg}`, sends: 'name (description)', status: 200 },
  { method: 'POST', path: `${PRODUCER}/packages/{pkg}/streams`, sends: 'catalogEntryPublicId', status: 204 },
  { method: 'DELETE', path: `${PRODUCER}/packages/{pkg}/streams/{catalogEntryPublicId}`, sends: '', status: 204 },
  { method: 'POST', path: `${PRODUCER}/packages/{pkg}/archive`, sends: '', status: 204 },
  { method: 'POST', path: `${BLOCKS}/streams/{catalogEntryPublicId}`, sends: '', status: 204 },
  { method: 'DELETE', path: `${BLOCKS}/streams/{catalogEntryPublicId}`, sends: '', status: 204 },
  { method: 'POST', path: `${BLOCKS}/packages/{pkg}`, sends: '', status: 204 },
  { method: 'DELETE', path: `${BLOCKS}/packages/{pkg}`, sends: '', status: 204 },
];

const nameOf = ({ method, path }: Pick<Row, 'method' | 'path'>) => `${method} ${path}`;
const routeOf = (row: Row) => ROUTES.find(({ method, path }) => method === row.method && path === row.path);

/** The rows that have a route. */
export const SERVED: readonly string[] = ROWS.filter(row => routeOf(row) !== undefined).map(nameOf);

/** Returns the differences between a response and its row. Empty if there are none. */
export function deviations(row: Row, { status, headers, body }: Reply): string[] {
  const wrong = status === row.status ? [] : [`status ${status} and not ${row.status}`];
  if (row.status === 204) return body === undefined ? wrong : [...wrong, 'a body with 204'];
  if (!headers.get('content-type')?.startsWith('application/json')) wrong.push('is not JSON');
  if (row.answers !== undefined) {
    const answer = (body ?? {}) as Readonly<Record<string, unknown>>;
    const expected = Object.keys(row.answers).toSorted().join();
    const got = Object.keys(answer).toSorted().join();
    if (got !== expected) wrong.push(`fields ${got} and not ${expected}`);
    for (const [field, shape] of Object.entries(row.answers)) {
      if (!shape.test(String(answer[field]))) wrong.push(`${field} is ${JSON.stringify(answer[field])}`);
    }
  }
  return [...wrong, ...unconventional(body)];
}

/** Returns the additional and missing fields of a sent body, compared to its row. */
function missent({ sends }: Row, body: object): string[] {
  const fields = sends.split(' ').filter(field => field !== '');
  const known = fields.map(field => field.replaceAll(/[()]/g, ''));
  return [
    ...Object.keys(body).filter(field => !known.includes(field)),
    ...fields.filter(field => !field.startsWith('(') && !(field in body)),
  ];
}

/**
 * Sends requests using the rows of the specification. Compares each response with its row, and with the declaration of
 * the route.
 */
export interface SpecifiedCalls {
  /**
   * @param row in the format of the table, such as `PUT /waas/streams`
   * @param params values of the path parameters
   * @throws with the name of the row, if the response differs
   */
  readonly call: <T = unknown>(
    by: RestClient,
    row: string,
    params?: Readonly<Record<string, string>>,
    body?: object,
  ) => Promise<T>;
  /** Returns the called rows, in the order of the table. */
  readonly called: () => string[];
}

export function createSpecifiedCalls(): SpecifiedCalls {
  const seen = new Set<string>();
  return {
    async call<T>(by: RestClient, name: string, params: Readonly<Record<string, string>> = {}, body?: object) {
      const row = ROWS.find(each => nameOf(each) === name);
      if (row === undefined) throw new Error(`the specification has no row ${name}`);
      expect(missent(row, body ?? {}), `${name}: fields that are sent`).toEqual([]);
      const path = row.path.replaceAll(/\{(\w+)\}/g, (_, key: string) => params[key] ?? `no-${key}`);
      const reply = await by.call<T>(row.method, path, body);
      expect(deviations(row, reply), `${name}: ${JSON.stringify(reply.body)}`).toEqual([]);
      expectDeclared(routeOf(row)?.operation ?? name, reply);
      seen.add(name);
      return reply.body;
    },
    called: () => ROWS.map(nameOf).filter(name => seen.has(name)),
  };
}

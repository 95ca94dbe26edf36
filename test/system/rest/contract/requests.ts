import fc from 'fast-check';
import {
  type OpenApiDocument,
  type OpenApiOperation,
  type OpenApiParameter,
  resolveReference,
} from '../../../../src/facade/openapi.ts';
import {
  damaged,
  STRANGE_BODIES,
  STRANGE_CONTENT_TYPES,
  STRANGE_HEADERS,
  STRANGE_QUERIES,
  STRANGE_SEGMENTS,
} from './hostile-values.ts';
import { idReference, inFamily } from './id-pool.ts';
import { localise } from './local-document.ts';
import { idPrefixOf, type JsonSchema, modelOf, type Resolve, valuesOf } from './schema-values.ts';

/** The purpose of a request: either everything is as documented, or there is exactly one deviation. */
export type Aim =
  | 'valid'
  | 'other ids'
  | 'damaged body'
  | 'strange body'
  | 'strange content type'
  | 'strange query'
  | 'strange path'
  | 'strange header'
  | 'strange token'
  | 'other method';

/** A request to be sent, whose ids may be references of `id-pool.ts`. */
export interface Plan {
  readonly aim: Aim;
  readonly template: string;
  readonly operation: OpenApiOperation;
  readonly method: string;
  /** Path parameters by name. `rawSegment` is written into the path without encoding. */
  readonly path: Readonly<Record<string, unknown>>;
  readonly rawSegment?: { readonly name: string; readonly text: string };
  readonly query: Readonly<Record<string, unknown>>;
  readonly rawQuery?: string;
  readonly json?: unknown;
  readonly rawBody?: string | Buffer;
  readonly contentType?: string;
  readonly header?: readonly [string, string | readonly string[]];
  readonly token: 'good' | 'none' | 'garbage' | 'expired' | 'basic' | 'twice';
  /** Whether all ids in the request belong together. */
  readonly coherent: boolean;
  /** The number of the caller. */
  readonly caller: number;
}

/** An operation of the document. */
export interface Operation {
  readonly template: string;
  readonly method: string;
  readonly operation: OpenApiOperation;
}

export function operationsOf(document: OpenApiDocument): Operation[] {
  return Object.entries(document.paths).flatMap(([template, item]) =>
    Object.entries(item).map(([method, operation]) => ({ template, method: method.toUpperCase(), operation })),
  );
}

/** Producers with one of each resource, created in advance. */
export const FAMILIES = 5;
/**
 * Calls after which their resources are less useful. Each call is limited to one family, and to resources created by
 * the run.
 */
const FINAL = /\/(archive|revoke|decline)$|^DELETE .*\/(subscriptions\/|activations$)/;
const CHANGES = /^POST .*\/blocks\/|^PUT .*\/subscriptions\//;

function familyOf({ method, template }: Operation, wanted: number): number {
  const line = `${method} ${template}`;
  if (FINAL.test(line)) return FAMILIES - 1;
  return CHANGES.test(line) ? FAMILIES - 2 : wanted;
}
const PREFIXES = ['ten_', 'cat_', 'pkg_', 'int_', 'act_', 'blk_', 'sub_', 'acc_', 'evt_', 'rpl_', 'sinv_'];
const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', 'TRACE', 'PROPFIND', 'QUERY'];

function valuesIn(
  place: OpenApiParameter['in'],
  { operation }: Operation,
  resolve: Resolve,
  all = false,
): fc.Arbitrary<Record<string, unknown>> {
  const parameters = (operation.parameters ?? []).filter(each => each.in === place && each.name !== 'cursor');
  const model = modelOf(
    parameters.map(({ name, schema }) => [name, schema] as const),
    resolve,
  );
  const requiredKeys = parameters.filter(({ required }) => all || required === true).map(({ name }) => name);
  return fc.record(model, { requiredKeys, noNullPrototype: true });
}

/**
 * Returns the example request of the reference, with the required parameters and the body. The ids are taken from the
 * document.
 */
export function exampleOf({ template, method, operation }: Operation): Plan {
  const valuesIn = (place: string) =>
    Object.fromEntries(
      (operation.parameters ?? [])
        .filter(each => each.in === place && each.required === true)
        .map(({ name, schema }) => [name, (schema as JsonSchema).examples?.[0]]),
    );
  const json = operation.requestBody?.content['application/json']?.example;
  const [path, query] = [valuesIn('path'), valuesIn('query')];
  return { aim: 'valid', template, operation, method, path, query, json, token: 'good', coherent: true, caller: 0 };
}

/** Returns the example using the ids of one family. */
function exampleAbout(of: Operation, family: number): Plan {
  const plan = exampleOf(of);
  const n = familyOf(of, family);
  const ids = Object.fromEntries(PREFIXES.map(prefix => [prefix, idReference(prefix, 'mine', n)]));
  const [path, query, json] = [plan.path, plan.query, plan.json].map(each => localise(each, ids));
  return { ...plan, path, query, json } as Plan;
}

/** Returns requests that match the document and use resources of the callers, most of which belong together. */
function validPlans(of: Operation, resolve: Resolve): fc.Arbitrary<Plan> {
  const body = of.operation.requestBody?.content['application/json'];
  const values = body === undefined ? fc.constant(undefined) : valuesOf(body.schema, resolve);
  const query = valuesIn('query', of, resolve);
  const instead = fc.oneof(
    fc.record({ query: fc.constant({}), json: values }),
    fc.record({ query: valuesIn('query', of, resolve, true), json: fc.constant(undefined) }),
  );
  const input = of.operation.requestBody?.required === false ? instead : fc.record({ query, json: values });
  const family = fc.option(
    fc.nat(FAMILIES - 1).map(n => familyOf(of, n)),
    { freq: 4, nil: undefined },
  );
  return fc
    .record({ path: valuesIn('path', of, resolve), input, caller: fc.nat(7), family })
    .map(({ path, input: { query, json }, caller, family: n }): Plan => {
      const { template, operation, method } = of;
      const made = n === undefined ? { path, query, json } : inFamily({ path, query, json }, n);
      return { aim: 'valid', template, operation, method, token: 'good', coherent: n !== undefined, caller, ...made };
    });
}

/** Replaces an id with a different id of the same kind, which either belongs to another tenant or does not exist. */
function otherIds(plan: Plan): fc.Arbitrary<Plan> {
  const named = (plan.operation.parameters ?? []).flatMap(({ in: place, name, schema }) => {
    const prefix = idPrefixOf(schema as JsonSchema);
    return place === 'header' || prefix === undefined ? [] : [{ place: place as 'path' | 'query', name, prefix }];
  });
  const fields = Object.entries((plan.json ?? {}) as object).flatMap(([name, value]) => {
    const prefix = /^@\{([a-z]+_):/.exec(String(value))?.[1];
    return prefix === undefined ? [] : [{ place: 'json' as const, name, prefix }];
  });
  if (named.length + fields.length === 0) return fc.constant(plan);
  return fc
    .tuple(fc.constantFrom(...named, ...fields), fc.nat(50), fc.boolean())
    .map(([{ place, name, prefix }, n, unknown]) => {
      const id = unknown ? `${prefix}${`${n}`.padStart(20, '0')}` : idReference(prefix, 'foreign', n);
      const old = (plan[place] ?? {}) as Record<string, unknown>;
      return { ...plan, aim: 'other ids', [place]: { ...old, [name]: id } } as Plan;
    });
}

const strange = <T>(values: readonly T[]): fc.Arbitrary<T> => fc.constantFrom(...values);

function faultyPlans(plan: Plan, resolve: Resolve): fc.Arbitrary<Plan> {
  const schema = plan.operation.requestBody?.content['application/json']?.schema as JsonSchema | undefined;
  const parameters = Object.keys(plan.path);
  const withBody = plan.method === 'GET' ? [] : STRANGE_BODIES;
  const kinds: { weight: number; arbitrary: fc.Arbitrary<Plan> }[] = [
    { weight: 2, arbitrary: otherIds(plan) },
    { weight: 1, arbitrary: strange(STRANGE_QUERIES).map(rawQuery => ({ ...plan, aim: 'strange query', rawQuery })) },
    { weight: 1, arbitrary: strange(STRANGE_HEADERS).map(header => ({ ...plan, aim: 'strange header', header })) },
    {
      weight: 1,
      arbitrary: strange(['none', 'garbage', 'expired', 'basic', 'twice'] as const).map(token => ({
        ...plan,
        aim: 'strange token',
        token,
      })),
    },
    { weight: 1, arbitrary: strange(METHODS).map(method => ({ ...plan, aim: 'other method', method })) },
  ];
  if (schema !== undefined && plan.json !== undefined) {
    const arbitrary = damaged(plan.json, schema, resolve).map((json): Plan => ({ ...plan, aim: 'damaged body', json }));
    kinds.push({ weight: 5, arbitrary });
    kinds.push({
      weight: 1,
      arbitrary: strange(STRANGE_CONTENT_TYPES).map(contentType => ({
        ...plan,
        aim: 'strange content type',
        contentType,
      })),
    });
  }
  if (withBody.length > 0) {
    kinds.push({
      weight: 2,
      arbitrary: strange(withBody).map(rawBody => ({ ...plan, aim: 'strange body', rawBody })),
    });
  }
  if (parameters.length > 0) {
    kinds.push({
      weight: 2,
      arbitrary: fc
        .tuple(strange(parameters), strange(STRANGE_SEGMENTS))
        .map(([name, text]) => ({ ...plan, aim: 'strange path', rawSegment: { name, text } })),
    });
  }
  return fc.oneof(...kinds);
}

/**
 * Returns `count` plans, which are the same for the same seed. It starts with the examples and includes every
 * operation.
 */
export function planRequests(document: OpenApiDocument, count: number, seed: number): Plan[] {
  const resolve: Resolve = reference => resolveReference(document, reference) as JsonSchema;
  const operations = operationsOf(document);
  const each = Math.ceil(count / operations.length);
  const lists = operations.map((operation, i) => {
    const valid = validPlans(operation, resolve);
    const any = fc.oneof(
      valid,
      valid.chain(plan => faultyPlans(plan, resolve)),
    );
    return [
      exampleAbout(operation, 0),
      exampleAbout(operation, 1),
      ...fc.sample(any, { numRuns: each, seed: seed + i }),
    ];
  });
  return Array.from({ length: each }, (_, i) => lists.map(list => list[i] as Plan))
    .flat()
    .slice(0, count);
}

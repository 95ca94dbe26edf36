import type { z } from 'zod';
import type { Route } from '../../../../src/facade/contract/route.ts';
import { ROUTES } from '../../../../src/facade/routes.ts';

/**
 * The kinds of ids that a caller can use. Each id belongs to the caller, belongs to another tenant, does not exist, or
 * is not an id.
 */
export type IdKind =
  | 'tenant'
  | 'stream'
  | 'package'
  | 'integration'
  | 'received'
  | 'activation'
  | 'subscription'
  | 'account'
  | 'event'
  | 'key'
  | 'replay'
  | 'offered'
  | 'published';

/** A place in which a route accepts an id. */
export interface IdPosition {
  readonly where: 'path' | 'query' | 'body';
  readonly name: string;
  readonly kind: IdKind;
}

/** The path parameters and fields that contain ids. An `{integration}` belongs to the producer or is received. */
const KIND_OF: Readonly<Record<string, IdKind>> = {
  tenant: 'tenant',
  producerTenantPublicId: 'tenant',
  catalogEntryPublicId: 'stream',
  pkg: 'package',
  integrationPublicId: 'integration',
  activation: 'activation',
  subscription: 'subscription',
  subscriptionPublicId: 'subscription',
  account: 'account',
  accountPublicId: 'account',
  event: 'event',
  upTo: 'event',
  'events[].id': 'event',
  eventId: 'published',
  stream: 'stream',
  key: 'key',
  replay: 'replay',
};

function kindOf(name: string, { access }: Route): IdKind | undefined {
  // This belongs to the producer, or is received and offered.
  if (name === 'integration') return access === 'recipient' ? 'received' : 'integration';
  if (name === 'catalogEntryPublicId' && access === 'recipient') return 'offered';
  return KIND_OF[name];
}

/**
 * Returns the names of the fields in a body or query, with fields in lists as `events[].id`. Empty if it is not an
 * object.
 */
function fieldsOf(schema: z.ZodType | undefined): string[] {
  const shape = (schema as z.ZodObject | undefined)?.shape ?? {};
  return Object.entries(shape).flatMap(([name, field]) => {
    const { element } = field as { readonly element?: z.ZodType };
    return [name, ...fieldsOf(element).map(inner => `${name}[].${inner}`)];
  });
}

export function positionsOf(route: Route): IdPosition[] {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const at = (where: IdPosition['where']) => (name: string) => {
    const kind = kindOf(name, route);
    if (where === 'path' && kind === undefined) throw new Error(`the kind of the id {${name}} is unknown`);
    return kind === undefined ? [] : [{ where, name, kind }];
  };
  const [query, body] = [fieldsOf(route.query), fieldsOf(route.body)];
  return [...names.flatMap(at('path')), ...query.flatMap(at('query')), ...body.flatMap(at('body'))];
}

/** Returns whether this id identifies the owner of the call. For these ids, a foreign value results in a 403. */
export function isScope(route: Route, { where, name, kind }: IdPosition): boolean {
  if (route.access === 'producer') return kind === 'tenant';
  if (route.access === 'recipient') return where === 'path' && name === 'integration';
  return route.access === 'account' && kind === 'account';
}

export interface Case {
  readonly route: Route;
  readonly position: IdPosition;
  readonly value: 'foreign' | 'unknown' | 'malformed';
}

/** All combinations of routes, id positions, and ids that do not belong to the caller. */
export const CASES: readonly Case[] = ROUTES.flatMap(route =>
  positionsOf(route).flatMap(position =>
    (['foreign', 'unknown', 'malformed'] as const).map(value => ({ route, position, value })),
  ),
);

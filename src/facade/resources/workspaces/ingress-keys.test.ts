import { expect, test } from 'vitest';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { createKeyRing } from '../../../core/delivery/key-ring.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { Route } from '../../contract/route.ts';
import { validate } from '../../contract/validate.ts';
import type { Facade } from '../../objects/facade.ts';
import { INGRESS_KEY_ROUTES } from './ingress-keys.ts';

const create = INGRESS_KEY_ROUTES.find(({ operation }) => operation === 'createIngressKey');
const body = create?.body;

test.each([
  ['2027-01-01', 'must be an RFC 3339 date and time such as 2026-01-31T12:00:00Z'],
  ['9999-12-31T23:59:59-23:59', 'must be before the year 10000 in UTC'],
])('the expiry time %s is refused at its own field', (expiresAt, detail) => {
  if (body === undefined) throw new Error('createIngressKey does not have a body');
  try {
    validate('body', body, { expiresAt });
  } catch (error) {
    expect(error).toBeInstanceOf(Refusal);
    return expect((error as Refusal).facts.errors).toEqual([{ pointer: '/expiresAt', detail }]);
  }
  throw new Error('the time was accepted');
});

test('an expiry time with any offset is accepted until the year 9999', () => {
  const expiresAt = '9999-12-31T23:59:59+23:59';
  if (body === undefined) throw new Error('createIngressKey does not have a body');
  expect(validate('body', body, { expiresAt })).toEqual({ expiresAt });
});

test('a repeated call returns the same key, even if another root key has become the first', async () => {
  const keys = createKeyRing(
    ['root.key', 'root.key.2'].map((name, i) => ({ name, secret: new Uint8Array(32).fill(i) })),
  );
  keys.follow(keys.oldest().fingerprint);
  const facade = {
    keys,
    caches: { live: async () => ({ metadata: { name: 'acme' }, spec: {} }) },
    writer: { edit: (attempt: () => unknown) => attempt(), apply: async () => ({}), waitFor: async () => ({}) },
  } as unknown as Facade;
  const call = (seed: string) =>
    create?.handle(facade, { tenant: { name: 'acme', publicId: 'ten_1' }, seed } as unknown as Parameters<
      Route['handle']
    >[1]);
  const seed = `${keys.first().id}.0123`;
  const first = await call(seed);
  keys.follow(keys.newest().fingerprint);
  expect(await call(seed)).toEqual(first);
  expect(await call(`${keys.first().id}.0123`)).not.toEqual(first);
});

test.each([
  ['not_in_force', 'unavailable', 'The key was not in force after 5 s and was removed. Try again.'],
  ['workspace_paused', 'workspace_paused', undefined],
  ['not_reconcilable', 'not_reconcilable', 'NamespaceNotAdopted: add the label'],
] as const)('a key that never takes effect because of %s is removed, with the reason %s', async (why, code, detail) => {
  const applied: unknown[] = [];
  const key = (id: string) => ({ id, sha256: '0'.repeat(64) });
  const managed = (ingressKeys: readonly { readonly id: string }[]) => ({
    metadata: {
      name: 'acme',
      managedFields: ingressKeys.map(({ id }) => ({
        manager: FIELD_MANAGER.facadeKeys,
        operation: 'Apply',
        fieldsV1: { 'f:spec': { 'f:ingressKeys': { [`k:{"id":"${id}"}`]: { '.': {} } } } },
      })),
    },
    spec: { ingressKeys },
  });
  let stored = managed([key('old')]);
  const facade = {
    wallMs: () => 0,
    keys: createKeyRing([{ name: 'root.key', secret: new Uint8Array(32) }]),
    caches: { live: async () => stored },
    writer: {
      edit: (attempt: () => unknown) => attempt(),
      async apply(
        _kind: string,
        _name: object,
        { spec }: { readonly spec: { readonly ingressKeys: { id: string }[] } },
      ) {
        stored = managed(spec.ingressKeys as ReturnType<typeof key>[]);
        applied.push(spec.ingressKeys.map(({ id }) => id));
        return stored;
      },
      async waitFor() {
        throw new Refusal(why, 'NamespaceNotAdopted: add the label');
      },
    },
  } as unknown as Facade;
  const call = { tenant: { name: 'acme', publicId: 'ten_1' }, body: { id: 'new' } };
  const refused = await create?.handle(facade, call as unknown as Parameters<Route['handle']>[1]).catch(error => error);
  expect(refused).toMatchObject({ code, facts: detail === undefined ? {} : { detail } });
  if (detail === undefined) expect(refused.facts.detail).toBeUndefined();
  expect(applied).toEqual([['new', 'old'], ['old']]);
});

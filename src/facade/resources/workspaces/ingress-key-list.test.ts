import { expect, test } from 'vitest';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import type { Facade } from '../../objects/facade.ts';
import { addIngressKey, removeIngressKey } from './ingress-key-list.ts';

interface Key {
  readonly id: string;
  readonly sha256: string;
}

const keyOf = (id: string): Key => ({ id, sha256: `hash of ${id}` });
const keysOf = (count: number, prefix: string) => Array.from({ length: count }, (_, n) => keyOf(`${prefix}-${n}`));

/** A workspace whose keys are managed by REST (`own`), by Git, or by both. `applied` contains all writes. */
function workspaceWith(keys: { own?: readonly Key[]; git?: readonly Key[]; both?: readonly Key[] }, more: object = {}) {
  const { own = [], git = [], both = [] } = keys;
  const fields = (list: readonly Key[]) => Object.fromEntries(list.map(({ id }) => [`k:{"id":"${id}"}`, {}]));
  const entry = (manager: string, list: readonly Key[]) => ({
    manager,
    fieldsV1: { 'f:spec': { 'f:ingressKeys': fields(list) } },
  });
  const managedFields = [entry(FIELD_MANAGER.facadeKeys, [...own, ...both]), entry('argocd', [...git, ...both])];
  const before = {
    metadata: { name: 'shop', managedFields, ...more },
    spec: { ingressKeys: [...own, ...git, ...both] },
  };
  const applied: string[][] = [];
  const facade = {
    caches: { live: async () => before },
    writer: {
      edit: (attempt: () => Promise<unknown>) => attempt(),
      apply: async (_kind: string, _name: object, { spec }: { readonly spec: { readonly ingressKeys: Key[] } }) => {
        applied.push(spec.ingressKeys.map(({ id }) => id));
        // Keys of other managers are kept.
        return { ...before, spec: { ingressKeys: [...spec.ingressKeys, ...git, ...both] } };
      },
    },
  } as unknown as Facade;
  return { facade, applied };
}

test('a workspace has at most 16 keys, including the keys of other managers', async () => {
  const full = workspaceWith({ own: keysOf(8, 'own'), git: keysOf(8, 'git') });
  await expect(addIngressKey(full.facade, 'shop', keyOf('new'))).rejects.toMatchObject({ code: 'invalid_request' });
  expect(full.applied).toEqual([]);
  const almost = workspaceWith({ own: keysOf(7, 'own'), git: keysOf(8, 'git') });
  await addIngressKey(almost.facade, 'shop', keyOf('new'));
  expect(almost.applied).toEqual([['new', ...keysOf(7, 'own').map(({ id }) => id)]]);
});

test('a key is not added twice, and does not replace another key with the same id', async () => {
  const { facade, applied } = workspaceWith({ own: [keyOf('own')], git: [keyOf('git')] });
  await addIngressKey(facade, 'shop', keyOf('own'));
  for (const id of ['own', 'git']) {
    const added = addIngressKey(facade, 'shop', { id, sha256: 'another hash' });
    await expect(added).rejects.toMatchObject({ code: 'ingress_key_exists' });
  }
  expect(applied).toEqual([]);
});

test('a key is only removed if no other manager has it', async () => {
  const { facade, applied } = workspaceWith({ own: keysOf(2, 'own'), git: [keyOf('git')], both: [keyOf('both')] });
  await removeIngressKey(facade, 'shop', 'own-0');
  await removeIngressKey(facade, 'shop', 'none');
  expect(applied.splice(0)).toEqual([['both', 'own-1']]);
  for (const id of ['git', 'both']) {
    const removed = removeIngressKey(facade, 'shop', id);
    await expect(removed).rejects.toMatchObject({ code: 'field_managed', message: expect.stringContaining('argocd') });
  }
});

test('keys of a workspace that is being deleted cannot be changed', async () => {
  const { facade, applied } = workspaceWith({ own: [keyOf('own')] }, { deletionTimestamp: '2026-01-01T00:00:00Z' });
  await expect(addIngressKey(facade, 'shop', keyOf('new'))).rejects.toMatchObject({ code: 'forbidden' });
  await expect(removeIngressKey(facade, 'shop', 'own')).rejects.toMatchObject({ code: 'forbidden' });
  expect(applied).toEqual([]);
});

import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';
import { createResourceWriter } from './resource-writer.ts';

const ACTIVATION = { integration: 'globex', groupKey: 'a' };
const stored = (spec: object) => ({ metadata: { namespace: 'shop', name: 'a', uid: 'u' }, spec }) as never;

test.each([
  ['creates one', undefined, ACTIVATION, 1],
  ['opens a revoked one again', { ...ACTIVATION, revoked: true }, ACTIVATION, 1],
  ['repeats an open one', ACTIVATION, ACTIVATION, 0],
  ['revokes one', ACTIVATION, { ...ACTIVATION, revoked: true }, 0],
  ['creates a revoked one', undefined, { ...ACTIVATION, revoked: true }, 0],
  ['revokes it again', { ...ACTIVATION, revoked: true }, { ...ACTIVATION, revoked: true }, 0],
])('a write that %s is checked against the limit of activations or not', async (_what, before, spec, limited) => {
  let checks = 0;
  const writer = createResourceWriter({
    client: { apply: async () => stored(spec) } as unknown as KubeClient,
    caches: { live: async () => undefined } as unknown as Caches,
    limits: {
      create: async (_kind, _name, _spec, create) => {
        checks += 1;
        return create();
      },
    },
    clock: createManualClock(),
  });
  await writer.apply(
    'Activation',
    { namespace: 'shop', name: 'a' },
    {
      manager: 'sluice-facade',
      before: before && (stored(before) as Cached<'Activation'>),
      spec,
      concern: ['integration', 'groupKey', 'revoked'],
    },
  );
  expect(checks).toBe(limited);
});

/** A writer whose API server has these responses. Records the metadata of writes and the preconditions of deletions. */
function writerWith(
  client: Partial<Record<'apply' | 'remove', () => Promise<unknown>>>,
  live: () => unknown = () => undefined,
) {
  const sent: unknown[] = [];
  const clock = createManualClock();
  const writer = createResourceWriter({
    client: {
      apply: (_resource: object, _name: object, { metadata }: { readonly metadata: object }) => {
        sent.push(metadata);
        return client.apply?.();
      },
      remove: (_resource: object, _name: object, precondition: object) => {
        sent.push(precondition);
        return client.remove?.();
      },
    } as unknown as KubeClient,
    caches: { live: async () => live() } as unknown as Caches,
    limits: { create: async (_kind, _name, _spec, create) => create() },
    clock,
  });
  return { writer, sent, clock };
}

const before = {
  metadata: { namespace: 'shop', name: 'a', uid: 'u', resourceVersion: '7' },
  spec: ACTIVATION,
} as unknown as Cached<'Activation'>;

test('a write only changes the object that was read, and if required, its version; otherwise, it only creates it', async () => {
  const { writer, sent } = writerWith({ apply: async () => before });
  const wanted = { manager: 'sluice-facade', spec: ACTIVATION, concern: ['groupKey'] } as const;
  await writer.apply('Activation', before.metadata, { ...wanted, before });
  await writer.apply('Activation', before.metadata, { ...wanted, before, exactly: true });
  await writer.apply('Activation', before.metadata, { ...wanted, exactly: true });
  expect(sent).toEqual([{ uid: 'u' }, { uid: 'u', resourceVersion: '7' }, { resourceVersion: '0' }]);
});

const entryOf = (manager: string, spec: object) => ({
  manager,
  operation: 'Apply',
  fieldsV1: { 'f:spec': Object.fromEntries(Object.keys(spec).map(field => [`f:${field}`, {}])) },
});

/** An object that REST has created with these fields. */
const createdWith = (spec: object, generation = 1) => {
  const managedFields = [entryOf('sluice-facade', spec)];
  return { metadata: { ...before.metadata, generation, managedFields }, spec: { ...spec, defaulted: true } };
};

test('a write whose first response was lost returns the object that it has created', async () => {
  const exists = new KubeError({ call: 'PATCH', status: 422, reason: 'Invalid' });
  const created = createdWith(ACTIVATION);
  const { writer } = writerWith({ apply: () => Promise.reject(exists) }, () => created);
  const wanted = { manager: 'sluice-facade', spec: ACTIVATION, concern: ['groupKey'] } as const;
  expect(await writer.apply('Activation', before.metadata, wanted)).toBe(created);
});

test.each([
  ['created in the meantime is refused so that the call can be retried', before, 'changed_meanwhile'],
  ['created with other fields is refused as well', createdWith({ ...ACTIVATION, revoked: true }), 'changed_meanwhile'],
  ['that was changed since its creation is refused as well', createdWith(ACTIVATION, 2), 'changed_meanwhile'],
  ['that does not exist is refused because of its fields', undefined, 'invalid_request'],
])('an invalid write of an object %s', async (_what, live, code) => {
  const invalid = new KubeError({ call: 'PATCH', status: 422, reason: 'Invalid' });
  const { writer } = writerWith({ apply: () => Promise.reject(invalid) }, () => live);
  const wanted = { manager: 'sluice-facade', spec: ACTIVATION, concern: ['groupKey'] } as const;
  await expect(writer.apply('Activation', before.metadata, wanted)).rejects.toMatchObject({ code });
});

test('a write whose fields another manager keeps is refused', async () => {
  const managedFields = [{ manager: 'argocd', fieldsV1: { 'f:spec': { 'f:revoked': {} } } }];
  const kept = { metadata: { ...before.metadata, managedFields }, spec: { ...ACTIVATION, revoked: true } };
  const { writer } = writerWith({ apply: async () => kept });
  const wanted = { manager: 'sluice-facade', spec: ACTIVATION, concern: ['revoked'] } as const;
  const applied = writer.apply('Activation', before.metadata, { ...wanted, before });
  await expect(applied).rejects.toMatchObject({ code: 'field_managed' });
});

test.each([
  ['that REST has applied', ACTIVATION, [entryOf('sluice-facade', ACTIVATION)], 0],
  [
    'that both REST and another manager have applied',
    ACTIVATION,
    [entryOf('argocd', ACTIVATION), entryOf('sluice-facade', ACTIVATION)],
    0,
  ],
  ['that only another manager has applied', ACTIVATION, [entryOf('argocd', ACTIVATION)], 1],
  [
    'that REST has applied with an additional field',
    ACTIVATION,
    [entryOf('sluice-facade', { ...ACTIVATION, revoked: true })],
    1,
  ],
  ['of which REST has only applied a part', ACTIVATION, [entryOf('sluice-facade', { groupKey: 'a' })], 1],
  ['with another value', { ...ACTIVATION, groupKey: 'b' }, [entryOf('sluice-facade', ACTIVATION)], 1],
  ['read from the cache, i.e. without managed fields', ACTIVATION, undefined, 1],
])('an object %s is applied again or not', async (_what, spec, managedFields, writes) => {
  const { writer, sent } = writerWith({ apply: async () => before });
  const present = { metadata: { ...before.metadata, managedFields }, spec: { ...spec, defaulted: true } } as never;
  const wanted = { manager: 'sluice-facade', spec: ACTIVATION, concern: ['groupKey'], before: present } as const;
  expect(await writer.apply('Activation', before.metadata, wanted)).toBe(writes === 0 ? present : before);
  expect(sent).toHaveLength(writes);
});

test('an object that was applied and is being deleted is created again', async () => {
  const { metadata, spec } = createdWith(ACTIVATION);
  const leaving = { metadata: { ...metadata, deletionTimestamp: 'x' }, spec } as unknown as Cached<'Activation'>;
  const { writer, sent } = writerWith({ apply: async () => before });
  const wanted = { manager: 'sluice-facade', spec: ACTIVATION, concern: ['groupKey'], before: leaving } as const;
  await writer.apply('Activation', before.metadata, wanted);
  expect(sent).toEqual([{ resourceVersion: '0' }]);
});

test('a deletion only concerns the object that was read, and waits until it no longer exists', async () => {
  let looks = 0;
  const { writer, sent, clock } = writerWith({ remove: async () => undefined }, () =>
    ++looks < 3 ? before : undefined,
  );
  const removed = writer.remove('Activation', before);
  await clock.advance(1_000);
  await removed;
  expect([sent, looks]).toEqual([[{ uid: 'u' }], 3]);
  // A new object has the same name.
  const conflict = new KubeError({ call: 'DELETE', status: 409, reason: 'Conflict' });
  const replaced = writerWith({ remove: () => Promise.reject(conflict) });
  await replaced.writer.remove('Activation', before);
});

test('an edit is tried five times if the object has changed, and once after any other problem', async () => {
  const { writer, clock } = writerWith({});
  const countOf = async (code: 'changed_meanwhile' | 'field_managed') => {
    let tries = 0;
    const edited = writer.edit(() => {
      tries++;
      return Promise.reject(new Refusal(code));
    });
    const refused = expect(edited).rejects.toMatchObject({ code });
    await clock.advance(10_000);
    await refused;
    return tries;
  };
  expect([await countOf('changed_meanwhile'), await countOf('field_managed')]).toEqual([5, 1]);
});

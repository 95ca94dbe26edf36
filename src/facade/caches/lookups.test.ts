import { expect, test } from 'vitest';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import { createLookups } from './lookups.ts';

interface Listed {
  readonly what: string;
  readonly answer: () => void;
}

/** An API server with objects named after their ids. With `held`, it responds after `answer` has been called. */
function setUp({ held = false } = {}) {
  const present: string[] = [];
  const listed: Listed[] = [];
  let failure: KubeError | undefined;
  const list = (async (
    { kind }: { kind: string },
    keep: (object: object) => object,
    { namespace = '', fieldSelector = '', limit }: { namespace?: string; fieldSelector?: string; limit?: number },
  ) => {
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    listed.push({ what: `${kind}/${namespace} ${fieldSelector} limit=${limit}`, answer });
    if (held) await promise;
    if (failure !== undefined) throw failure;
    const value = fieldSelector.split('=')[1];
    const items = present.filter(name => name === value || `hash of ${name}` === value);
    return { items: items.map(name => keep({ metadata: { name } })), resourceVersion: '1' };
  }) as unknown as KubeClient['list'];
  const idOf = {
    publicId: ({ metadata }: { metadata: { name: string } }) => [metadata.name],
    tokenHash: ({ metadata }: { metadata: { name: string } }) => [`hash of ${metadata.name}`],
  };
  const indexes = new Proxy({}, { get: () => idOf }) as Parameters<typeof createLookups>[0]['indexes'];
  const { findLive } = createLookups({ client: { list }, indexes, keep: object => object });
  const find = (id: string, namespace?: string) =>
    findLive('Package', id, namespace).then(object => object?.metadata.name);
  return {
    present,
    listed,
    find,
    findLive,
    fail: (status: number | undefined) => {
      failure = status === undefined ? undefined : new KubeError({ call: 'LIST', status, reason: 'Test' });
    },
  };
}

/** Runs everything that does not wait for the API server. */
const settle = () => new Promise(resolve => setImmediate(resolve));

test('the API server selects the object, and a kind is never listed', async () => {
  const { present, listed, find, findLive } = setUp();
  present.push('a');
  expect(await find('a', 'shop')).toBe('a');
  expect(await find('b')).toBeUndefined();
  expect((await findLive('Integration', 'hash of a', undefined, 'tokenHash'))?.metadata.name).toBe('a');
  expect(listed.map(({ what }) => what)).toEqual([
    'Package/shop status.publicId=a limit=0',
    'Package/ status.publicId=b limit=0',
    'Integration/ status.invitation.tokenHash=hash of a limit=0',
  ]);
});

test('later calls find objects that were created after a list was started', async () => {
  const { present, listed, find } = setUp({ held: true });
  const before = find('a');
  await settle();
  present.push('other');
  const after = [find('a'), find('a')];
  listed[0]?.answer();
  expect(await before).toBeUndefined();
  present.push('a');
  await settle();
  listed[1]?.answer();
  expect(await Promise.all(after)).toEqual(['a', 'a']);
  expect(listed).toHaveLength(2);
});

test('at most four lists of a place run concurrently, and other places do not wait for them', async () => {
  const { listed, find } = setUp({ held: true });
  const found = Array.from({ length: 50 }, (_, i) => find(`missing-${i}`));
  await settle();
  expect(listed).toHaveLength(4);
  const other = find('a', 'shop');
  await settle();
  expect(listed).toHaveLength(5);
  for (let i = 0; i < 51; i++) {
    listed[i]?.answer();
    await settle();
    expect(listed.length).toBeLessThanOrEqual(i + 6);
  }
  expect(await Promise.all(found)).toEqual(found.map(() => undefined));
  expect(await other).toBeUndefined();
});

test('an object that only claims an id is not found', async () => {
  const list = async () => ({
    items: [{ metadata: { name: 'forged' }, status: { publicId: 'a' } }],
    resourceVersion: '1',
  });
  const indexes = new Proxy({}, { get: () => ({ publicId: () => ['b'] }) });
  const { findLive } = createLookups({
    client: { list: list as unknown as KubeClient['list'] },
    indexes: indexes as Parameters<typeof createLookups>[0]['indexes'],
    keep: object => object,
  });
  expect(await findLive('Package', 'a')).toBeUndefined();
});

test.each([
  ['no response', 0],
  ['a CustomResourceDefinition of an older version', 400],
  ['an error of the API server', 500],
])('%s results in 503 for its calls, and the next call is tried', async (_, status) => {
  const { present, find, fail } = setUp();
  fail(status);
  await expect(find('a')).rejects.toMatchObject({ code: 'unavailable' });
  fail(undefined);
  present.push('a');
  expect(await find('a')).toBe('a');
});

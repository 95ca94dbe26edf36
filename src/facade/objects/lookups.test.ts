import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import { KubeError } from '../../kube/kube-error.ts';
import { createLookups } from './lookups.ts';

/** An API server with packages that are called by their ids. */
function setUp() {
  const clock = createManualClock();
  const present: string[] = [];
  const listed: string[] = [];
  const read: string[] = [];
  const whole: boolean[] = [];
  let failing = false;
  const list = (async (
    resource: { kind: string },
    keep: (object: object) => object,
    options: { namespace?: string; metadataOnly?: boolean },
  ) => {
    listed.push(`${resource.kind}/${options.namespace ?? ''}@${clock.nowMs()}`);
    whole.push(options.metadataOnly !== true);
    if (failing) throw new KubeError({ call: 'LIST', status: 0, reason: 'ConnectionFailed' });
    const spec = options.metadataOnly === true ? {} : { spec: { integration: 'ada' } };
    return { items: present.map(name => keep({ metadata: { name }, ...spec })), resourceVersion: '1' };
  }) as unknown as KubeClient['list'];
  const get = (async (_resource: object, { name }: { name: string }) => {
    read.push(name);
    return present.includes(name) ? { metadata: { name }, spec: { streams: [] } } : undefined;
  }) as unknown as KubeClient['get'];
  const idOf = {
    publicId: ({ metadata }: { metadata: { name: string } }) => [metadata.name],
    tokenHash: ({ metadata }: { metadata: { name: string } }) => [`hash of ${metadata.name}`],
  };
  const indexes = new Proxy({}, { get: () => idOf }) as Parameters<typeof createLookups>[0]['indexes'];
  const lookups = createLookups({ client: { list, get }, clock, indexes, keep: object => object });
  const find = (id: string, namespace = 'shop', index?: string) =>
    lookups.findLive('Package', id, namespace, index).then(object => object?.metadata.name);
  return {
    clock,
    present,
    listed,
    read,
    whole,
    lookups,
    find,
    fail: (now: boolean) => {
      failing = now;
    },
  };
}

test('one list answers all simultaneous requests', async () => {
  const { present, listed, find, clock } = setUp();
  present.push('a');
  const first = find('a');
  const others = Array.from({ length: 50 }, (_, i) => find(`missing-${i}`));
  expect(await first).toBe('a');
  await clock.advance(1_000);
  expect(await Promise.all(others)).toEqual(others.map(() => undefined));
  expect(listed).toEqual(['Package/shop@0', 'Package/shop@1000']);
});

test('what was made after the last list began is found, a second later at most', async () => {
  const { present, find, clock } = setUp();
  expect(await find('a')).toBeUndefined();
  await clock.advance(100);
  present.push('a');
  const found = find('a');
  await clock.advance(900);
  expect(await found).toBe('a');
});

test('after a second the list is anew at once; namespaces wait for each other never', async () => {
  const { listed, find, clock } = setUp();
  await Promise.all([find('a'), find('a', 'other')]);
  await clock.advance(1_000);
  await find('a');
  expect(listed).toEqual(['Package/shop@0', 'Package/other@0', 'Package/shop@1000']);
});

test('another index has lists of its own, and its values are no ids', async () => {
  const { present, listed, find } = setUp();
  present.push('a');
  expect(await find('a')).toBe('a');
  expect(await find('hash of a', 'shop', 'tokenHash')).toBe('a');
  expect(listed).toHaveLength(2);
  const anew = setUp();
  anew.present.push('a');
  expect(await anew.find('a', 'shop', 'tokenHash')).toBeUndefined();
});

test('a failed list is 503 for its requests, and the next one is tried', async () => {
  const { present, find, clock, fail } = setUp();
  fail(true);
  await expect(find('a')).rejects.toMatchObject({ code: 'unavailable' });
  fail(false);
  present.push('a');
  const found = find('a');
  await clock.advance(1_000);
  expect(await found).toBe('a');
});

test('only metadata is listed where the id is of it, and one object is read', async () => {
  const { present, read, whole, lookups, find } = setUp();
  present.push('a', 'b', 'c');
  expect(await lookups.findLive('Package', 'b', 'shop')).toEqual({ metadata: { name: 'b' }, spec: { streams: [] } });
  expect({ read, whole }).toEqual({ read: ['b'], whole: [false] });
  expect(await find('missing', 'other')).toBeUndefined();
  expect(read).toEqual(['b']);
});

test.each(['Activation', 'Block'] as const)(
  'the id of an %s is of its spec, so that whole objects are listed',
  async kind => {
    const { present, read, whole, lookups } = setUp();
    present.push('a');
    expect(await lookups.findLive(kind, 'a', 'shop')).toMatchObject({ spec: { integration: 'ada' } });
    expect({ read, whole }).toEqual({ read: [], whole: [true] });
  },
);

test('what went between the list and the read is not found', async () => {
  const { present, lookups } = setUp();
  present.push('a');
  const found = lookups.findLive('Package', 'a', 'shop');
  present.length = 0;
  expect(await found).toBeUndefined();
});

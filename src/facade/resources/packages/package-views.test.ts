import { describe, expect, test } from 'vitest';
import { publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import {
  createdPackage,
  isAsCreated,
  listedStream,
  PackageDetail,
  packageDetail,
  packageName,
} from './package-views.ts';

const pkg = (spec: Cached<'Package'>['spec']) => ({
  metadata: { namespace: 'shop', name: 'basics', uid: 'u', resourceVersion: '1' },
  spec,
});

test.each([
  ['its key, when it has no name', {}, 'basics'],
  ['its first name', { name: 'Basics!' }, 'Basics!'],
  ['its last name', { name: 'Basics!', displayName: 'The basics' }, 'The basics'],
])('a package is named %s', (_what, spec, name) => {
  expect(packageName(pkg(spec))).toBe(name);
});

test('a response contains streams by public id and key, each once', () => {
  const detail = packageDetail(pkg({ name: 'Basics', streams: ['orders', 'carts', 'orders'] }));
  expect(detail).toEqual({
    publicId: publicId('Package', 'shop', 'basics'),
    key: 'basics',
    name: 'Basics',
    description: null,
    status: 'Active',
    streamCount: 2,
    streams: [
      { catalogEntryPublicId: publicId('CatalogStream', 'shop', 'carts'), key: 'carts' },
      { catalogEntryPublicId: publicId('CatalogStream', 'shop', 'orders'), key: 'orders' },
    ],
  });
  expect(PackageDetail.parse(detail)).toEqual(detail);
  expect(createdPackage(pkg({ archived: true })).status).toBe('Archived');
});

test('a stream is found in the list by its public id if it is in the same workspace', () => {
  const { spec } = pkg({ streams: ['carts', 'orders'] });
  expect(listedStream(pkg(spec), publicId('CatalogStream', 'shop', 'orders'))).toBe('orders');
  expect(listedStream(pkg(spec), publicId('CatalogStream', 'store', 'orders'))).toBeUndefined();
  expect(listedStream(pkg({}), publicId('CatalogStream', 'shop', 'orders'))).toBeUndefined();
});

describe('repeating the creation of a package', () => {
  const wanted = { name: 'Basics', description: 'most wanted' };
  test.each<[string, Cached<'Package'>['spec'], boolean]>([
    ['as it was', { name: 'Basics', description: 'most wanted' }, true],
    ['with streams since', { name: 'Basics', description: 'most wanted', streams: ['orders'] }, true],
    ['renamed to its current name', { name: 'Basics', displayName: 'Basics', description: 'most wanted' }, true],
    ['renamed', { name: 'Basics', displayName: 'Other', description: 'most wanted' }, false],
    ['renamed to this', { name: 'basics', displayName: 'Basics', description: 'most wanted' }, false],
    ['described otherwise', { name: 'Basics', description: 'other' }, false],
    ['not described', { name: 'Basics' }, false],
    ['archived', { name: 'Basics', description: 'most wanted', archived: true }, false],
  ])('%s: %s', (_what, spec, same) => {
    expect(isAsCreated(pkg(spec), wanted)).toBe(same);
  });

  test('of a manifest without a name uses its key', () => {
    expect(isAsCreated(pkg({}), { name: 'basics' })).toBe(true);
    expect(isAsCreated(pkg({}), { name: 'Basics' })).toBe(false);
  });
});

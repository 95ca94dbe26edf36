import { expect, test } from 'vitest';
import type { AnyObject } from '../../kube/object.ts';
import { versionOf } from './versions.ts';

const metadata = { name: 'orders', uid: 'u', resourceVersion: '1', generation: 1, finalizers: ['f'] };
const of = (more: object, status?: object) =>
  versionOf({ metadata: { ...metadata, ...more }, ...(status === undefined ? {} : { status }) } as AnyObject);

test('the version only changes with the data from which the routes are compiled', () => {
  const different = [
    of({}),
    of({ uid: 'v' }),
    of({ generation: 2 }),
    of({ finalizers: [] }),
    of({ deletionTimestamp: '2026-01-01T00:00:00Z' }),
    of({}, { signing: { salt: 'a-salt' } }),
  ];
  expect(new Set(different).size).toBe(different.length);
  expect(of({ resourceVersion: '2' }, { signing: { version: 1 }, conditions: [] })).toBe(of({}));
});

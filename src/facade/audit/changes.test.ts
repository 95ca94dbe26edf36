import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { type Change, collectChanges, describeChange, noteChange } from './changes.ts';

const plain = (text: string) => text;
const metadata = { name: 'shop', namespace: 'acme' };
const change = (before: object | undefined, after: object | undefined): Change => ({
  kind: 'Package',
  before: before && { metadata, spec: before },
  after: after && { metadata, spec: after },
});
const about = { kind: 'Package', namespace: 'acme', name: 'shop' };

test('a change has the fields that differ, before and after', () => {
  const changed = change({ key: 'a', archived: false }, { key: 'a', archived: true, name: 'b' });
  expect(describeChange(changed, plain)).toEqual({
    ...about,
    before: { archived: false },
    after: { archived: true, name: 'b' },
  });
  expect(describeChange(change({ key: 'a' }, { key: 'a' }), plain)).toBeUndefined();
});

test('an object that does not exist is null', () => {
  expect(describeChange(change(undefined, { key: 'a' }), plain)).toEqual({
    ...about,
    before: null,
    after: { key: 'a' },
  });
  expect(describeChange(change({ key: 'a' }, undefined), plain)).toEqual({
    ...about,
    before: { key: 'a' },
    after: null,
  });
});

test('of a list, only the items that differ are shown', () => {
  const many = Array.from({ length: 1_000 }, (_, n) => ({ name: `s${n}` }));
  const changed = change({ streams: many }, { streams: [...many.slice(1), { name: 'new' }] });
  expect(describeChange(changed, plain)).toMatchObject({
    before: { streams: [{ name: 's0' }] },
    after: { streams: [{ name: 'new' }] },
  });
});

test('changes belong to the call that makes them, also if it fails', async () => {
  const [first, second]: Change[][] = [[], []];
  const one = change(undefined, { key: '1' });
  const two = change(undefined, { key: '2' });
  noteChange(change(undefined, { key: 'outside of a call' }));
  await Promise.all([
    collectChanges(first as Change[], async () => {
      await delay(2);
      noteChange(one);
    }),
    collectChanges(second as Change[], async () => {
      await delay(1);
      noteChange(two);
      throw new Error('refused');
    }).catch(() => undefined),
  ]);
  expect([first, second]).toEqual([[one], [two]]);
});

import { expect, test } from 'vitest';
import type { BlockSpec } from '../../api/kinds/block.ts';
import { coverage } from './coverage.ts';

const block = (integration: string, kind: BlockSpec['target']['kind'], name: string) => ({
  spec: { integration, target: { kind, name }, onUnblock: 'Continue' as const },
});
const packages = [
  { name: 'money', spec: { streams: ['orders', 'refunds'], archived: true } },
  { name: 'empty', spec: {} },
];

test('a block applies to a stream if it refers to the stream, or to a package that contains it', () => {
  const own = block('ada', 'CatalogStream', 'orders');
  const whole = block('ada', 'Package', 'money');
  const blocks = [own, whole, block('ada', 'Package', 'empty'), block('ada', 'Package', 'absent')];
  const covering = coverage({ packages, blocks });
  expect(covering('ada', 'orders')).toEqual([own, whole]);
  expect(covering('ada', 'refunds')).toEqual([whole]);
  expect(covering('ada', 'visits')).toEqual([]);
});

test('a block of one integration does not apply to another, and a package is not a stream with the same name', () => {
  const covering = coverage({ packages, blocks: [block('ada', 'Package', 'money')] });
  expect(covering('bob', 'orders')).toEqual([]);
  expect(covering('ada', 'money')).toEqual([]);
});

import { expect, test } from 'vitest';
import { countByNamespace } from './namespace-counts.ts';
import type { ChangeHandler } from './reflected.ts';

function counted() {
  const handlers: ChangeHandler<unknown>[] = [];
  const of = countByNamespace({ subscribe: handler => (handlers.push(handler), () => undefined) });
  return {
    of,
    notify: (...[change, key]: [Parameters<ChangeHandler<unknown>>[0], string]) =>
      handlers[0]?.(change, key, undefined, undefined),
  };
}

test('objects are counted by namespace as they come and go', () => {
  const { of, notify } = counted();
  notify('added', 'shop/a');
  notify('added', 'shop/b');
  notify('updated', 'shop/b');
  notify('added', 'other/a');
  expect([of('shop'), of('other'), of('nobody')]).toEqual([2, 1, 0]);
  notify('deleted', 'shop/a');
  notify('deleted', 'other/a');
  expect([of('shop'), of('other')]).toEqual([1, 0]);
});

test('a name that is longer than a namespace is not mistaken for it', () => {
  const { of, notify } = counted();
  notify('added', 'shop-2/a');
  expect([of('shop'), of('shop-2')]).toEqual([0, 1]);
});

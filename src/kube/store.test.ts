import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createStore } from './store.ts';

describe('store', () => {
  it('returns the same result as a scan after any changes', () => {
    const key = fc.constantFrom('a', 'b', 'c', 'd');
    const value = fc.uniqueArray(fc.constantFrom('x', 'y', 'z'), { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.option(value)), { maxLength: 40 }), steps => {
        const store = createStore<readonly string[]>({ tags: tags => tags });
        const model = new Map<string, readonly string[]>();
        for (const [name, tags] of steps) {
          if (tags === null) {
            store.remove(name);
            model.delete(name);
          } else {
            store.set(name, tags);
            model.set(name, tags);
          }
          for (const tag of ['x', 'y', 'z']) {
            const scanned = [...model.values()].filter(tagged => tagged.includes(tag));
            const found = store.byIndex('tags', tag);
            expect(new Set(found)).toEqual(new Set(scanned));
            expect(found).toHaveLength(scanned.length);
            expect([...store.eachByIndex('tags', tag)]).toEqual(found);
            expect(new Map(store.countsByIndex('tags')).get(tag) ?? 0).toBe(scanned.length);
          }
        }
        expect([...store.keys()].toSorted()).toEqual([...model.keys()].toSorted());
      }),
    );
  });

  it('looks up each value of an index when it is needed', () => {
    const store = createStore<readonly string[]>({ tags: ([tag = '']) => [tag] });
    const names = ['a', 'removed', 'moved', 'changed', 'z'];
    for (const name of names) store.set(name, ['x', name]);
    const values = store.eachByIndex('tags', 'x');
    expect(values.next().value).toEqual(['x', 'a']);
    store.remove('removed');
    store.set('moved', ['y', 'moved']);
    store.set('a', ['x', 'again']);
    store.set('added', ['x', 'added']);
    store.set('changed', ['x', 'new']);
    expect([...values]).toEqual([
      ['x', 'z'],
      ['x', 'added'],
      ['x', 'new'],
    ]);
  });

  it('yields the values that replace those of an index, even if it only has a single one', () => {
    const store = createStore<readonly string[]>({ tags: ([tag = '']) => [tag] });
    store.set('a', ['x', 'a']);
    const values = store.eachByIndex('tags', 'x');
    expect(values.next().value).toEqual(['x', 'a']);
    store.set('b', ['x', 'b']);
    expect(values.next().value).toEqual(['x', 'b']);
    for (const name of ['a', 'b']) store.remove(name);
    store.set('c', ['x', 'c']);
    expect([...values]).toEqual([['x', 'c']]);
  });

  it('refuses an undeclared index', () => {
    expect(() => createStore().byIndex('other', 'x')).toThrow('no index is called other');
    expect(() => createStore().eachByIndex('other', 'x').next()).toThrow('no index is called other');
  });
});

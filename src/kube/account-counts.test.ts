import { expect, test } from 'vitest';
import { countByAccount } from './account-counts.ts';
import type { Change, ChangeHandler } from './reflected.ts';

interface Workspace {
  readonly spec: { readonly account: string };
}

function setUp() {
  const handlers = { streams: [], blocks: [], workspaces: [] } as {
    streams: ChangeHandler<unknown>[];
    blocks: ChangeHandler<unknown>[];
    workspaces: ChangeHandler<Workspace>[];
  };
  const cache = <P>(list: ChangeHandler<P>[]) => ({
    subscribe: (handler: ChangeHandler<P>) => {
      list.push(handler);
      return () => undefined;
    },
  });
  const changed: string[] = [];
  const counts = countByAccount(
    { streams: cache(handlers.streams), blocks: cache(handlers.blocks) },
    cache(handlers.workspaces),
    {
      onChange: (account, limit) => changed.push(`${account} ${limit}`),
      isCounted: (limit, object) => limit !== 'blocks' || object !== 'lifted',
    },
  );
  return {
    changed,
    of: counts.of,
    stream: (change: Change, key: string) => handlers.streams[0]?.(change, key, undefined, undefined),
    block: (change: Change, key: string, old?: unknown, current?: unknown) =>
      handlers.blocks[0]?.(change, key, old, current),
    workspace: (name: string, account: string | undefined) =>
      handlers.workspaces[0]?.(
        account === undefined ? 'deleted' : 'added',
        name,
        undefined,
        account === undefined ? undefined : { spec: { account } },
      ),
  };
}

test('objects of all workspaces of an account are added up, by limit', () => {
  const { of, stream, block, workspace } = setUp();
  workspace('shop', 'acme');
  workspace('shop-2', 'acme');
  workspace('other', 'globex');
  for (const key of ['shop/a', 'shop/b', 'shop-2/a', 'other/a']) stream('added', key);
  block('added', 'shop-2/x');
  stream('updated', 'shop/a');
  expect([of('acme', 'streams'), of('acme', 'blocks'), of('globex', 'streams')]).toEqual([3, 1, 1]);
  stream('deleted', 'shop/a');
  expect([of('acme', 'streams'), of('nobody', 'streams')]).toEqual([2, 0]);
});

test('objects are counted from when their workspace is known until they are removed', () => {
  const { of, stream, workspace } = setUp();
  stream('added', 'shop/a');
  stream('added', 'shop/b');
  expect(of('acme', 'streams')).toBe(0);
  workspace('shop', 'acme');
  expect(of('acme', 'streams')).toBe(2);
  workspace('shop', 'globex');
  expect([of('acme', 'streams'), of('globex', 'streams')]).toEqual([0, 2]);
  workspace('shop', undefined);
  expect(of('globex', 'streams')).toBe(0);
  stream('deleted', 'shop/a');
  workspace('shop', 'acme');
  expect(of('acme', 'streams')).toBe(1);
});

test('every change of a count is reported, and nothing else', () => {
  const { changed, stream, workspace } = setUp();
  stream('added', 'shop/a');
  workspace('shop', 'acme');
  workspace('shop', 'acme');
  stream('updated', 'shop/a');
  expect(changed).toEqual(['acme streams']);
  stream('deleted', 'shop/a');
  expect(changed).toEqual(['acme streams', 'acme streams']);
});

test('an object is only counted while it counts towards a limit', () => {
  const { of, changed, block, workspace } = setUp();
  workspace('shop', 'acme');
  block('added', 'shop/a', undefined, 'set');
  block('added', 'shop/b', undefined, 'lifted');
  expect(of('acme', 'blocks')).toBe(1);
  block('updated', 'shop/a', 'set', 'lifted');
  expect(of('acme', 'blocks')).toBe(0);
  block('updated', 'shop/b', 'lifted', 'set');
  block('updated', 'shop/b', 'set', 'set');
  expect(of('acme', 'blocks')).toBe(1);
  block('deleted', 'shop/a', 'lifted');
  block('deleted', 'shop/b', 'set');
  expect(of('acme', 'blocks')).toBe(0);
  expect(changed).toHaveLength(4);
});

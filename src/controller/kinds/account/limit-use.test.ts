import { expect, test } from 'vitest';
import type { AccountLimits } from '../../../api/kinds/account-limits.ts';
import type { ChangeHandler } from '../../../kube/reflected.ts';
import type { Caches } from '../../caches/caches.ts';
import { createLimitUse } from './limit-use.ts';

/** The account `acme` with the workspace `shop`, in which objects are created and deleted. */
function setUp(limits: AccountLimits, onRead = () => {}) {
  const handlers = new Map<string, ChangeHandler<unknown>[]>();
  const account = {
    metadata: { name: 'acme' },
    spec: {
      plan: 'Free' as const,
      includedTokens: 0,
      owners: [],
      get limits() {
        onRead();
        return limits;
      },
    },
  };
  const cacheOf = (kind: string) => ({
    store: { get: (name: string) => (kind === 'Account' && name === 'acme' ? account : undefined) },
    subscribe: (handler: ChangeHandler<unknown>) => {
      handlers.set(kind, [...(handlers.get(kind) ?? []), handler]);
      return () => undefined;
    },
  });
  const caches = new Proxy({}, { get: (_, kind: string) => cacheOf(kind) }) as Caches;
  const use = createLimitUse(caches, { byPlan: { Free: {}, Metered: {} }, ceilings: {} });
  const notify = (kind: string, ...args: Parameters<ChangeHandler<unknown>>) => {
    for (const handler of handlers.get(kind) ?? []) handler(...args);
  };
  notify('Workspace', 'added', 'shop', undefined, { spec: { account: 'acme' } });
  const enqueued: string[] = [];
  const change = (what: 'added' | 'deleted', count: number) => {
    for (let n = 0; n < count; n++) notify('CatalogStream', what, `shop/${n}`, undefined, undefined);
  };
  return {
    enqueued,
    levels: () => use.levelsOf(account),
    highest: () => use.highestShareOf(account),
    shares: () => Object.fromEntries(use.sharesOf(account)),
    listen: () => use.source.subscribe(name => enqueued.push(name)),
    make: (count: number) => change('added', count),
    remove: (count: number) => change('deleted', count),
  };
}

test('an account is enqueued when a level changes, and not for each object', () => {
  const { enqueued, levels, listen, make, remove } = setUp({ streams: 100 });
  listen();
  make(89);
  expect([enqueued, levels()]).toEqual([[], { reached: [], near: [] }]);
  make(1);
  expect([enqueued.splice(0), levels()]).toEqual([['acme'], { reached: [], near: ['streams'] }]);
  make(9);
  expect(enqueued).toEqual([]);
  make(1);
  expect([enqueued.splice(0), levels()]).toEqual([['acme'], { reached: ['streams'], near: [] }]);
  remove(1);
  expect([enqueued.splice(0), levels()]).toEqual([['acme'], { reached: [], near: ['streams'] }]);
  remove(19);
  expect([enqueued, levels()]).toEqual([[], { reached: [], near: ['streams'] }]);
  remove(1);
  expect([enqueued, levels()]).toEqual([['acme'], { reached: [], near: [] }]);
});

test('nothing is enqueued for missing limits, or without a listener', () => {
  const unlimited = setUp({ streams: 0 });
  unlimited.listen();
  unlimited.make(10);
  expect([unlimited.enqueued, unlimited.levels()]).toEqual([[], { reached: [], near: [] }]);
  const silent = setUp({ streams: 1 });
  const stop = silent.listen();
  stop();
  silent.make(1);
  expect([silent.enqueued, silent.levels()]).toEqual([[], { reached: ['streams'], near: [] }]);
});

test('the usage is a fraction of each limit, except for limits of 0', () => {
  const { shares, make } = setUp({ streams: 4, blocks: 0, packages: 2 });
  expect(shares()).toEqual({ streams: 0, packages: 0 });
  make(5);
  expect(shares()).toEqual({ streams: 1.25, packages: 0 });
});

test('the highest share is the share of the limit with the highest usage, and the limits of a spec are only computed once', () => {
  let reads = 0;
  const { highest, shares, make } = setUp({ streams: 10, blocks: 0 }, () => reads++);
  expect(highest()).toBe(0);
  make(4);
  expect([highest(), shares()]).toEqual([0.4, expect.objectContaining({ streams: 0.4 })]);
  expect(reads).toBe(1);
});

import { expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { createLogger } from '../telemetry/log.ts';
import { sleep } from '../time/clock.ts';
import type { KubeClient, Selection } from './client.ts';
import { KubeError } from './kube-error.ts';
import { createNamespacedViews } from './namespaced-views.ts';
import type { AnyObject } from './object.ts';
import type { Resource } from './resource.ts';
import type { WatchEvent } from './watch-stream.ts';

const THINGS: Resource = { group: 'x', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true };
const BROKEN = new KubeError({ call: 'GET things', status: 500, reason: 'InternalError', detail: 'broken' });
const TIMEOUT = new KubeError({ call: 'GET things', status: 0, reason: 'Timeout' });
const FORBIDDEN = new KubeError({ call: 'GET things', status: 403, reason: 'Forbidden', detail: 'no' });

type Thing = AnyObject & { readonly color: string };
const thing = (namespace: string, name: string, color: string, version = 1): Thing => ({
  metadata: { namespace, name, uid: name, resourceVersion: `${version}` },
  color,
});

/** The same as in the client. */
const CONNECTIONS = 16;

/**
 * Starts two views, for red and for green objects. The server responds with the objects in `things`.
 *
 * @param listMs how long it takes to respond to a list, once the list has a connection
 */
function start(listMs = 0) {
  const clock = createManualClock();
  const waiting: (() => void)[] = [];
  const connections = { used: 0, most: 0 };
  async function withConnection<T>(run: () => Promise<T>): Promise<T> {
    if (connections.used === CONNECTIONS) await new Promise<void>(resolve => waiting.push(resolve));
    else connections.most = Math.max(connections.most, ++connections.used);
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) connections.used--;
      else next();
    }
  }
  const things = new Map<string, Thing[]>();
  const forbidden = new Set<string>();
  const broken = new Set<string>();
  const silent = new Set<string>();
  const watches = new Map<string, { push: (event: WatchEvent<Thing>) => void; fail: (error: unknown) => void }>();
  const lists: string[] = [];
  const client = {
    list: async (
      _resource: Resource,
      project: (object: never) => unknown,
      { namespace = '', signal }: Selection & { readonly signal?: AbortSignal },
    ) => {
      lists.push(namespace);
      return await withConnection(async () => {
        if (silent.has(namespace)) {
          await sleep(clock, 60_000, signal);
          throw TIMEOUT;
        }
        if (listMs > 0) await sleep(clock, listMs, signal);
        if (forbidden.has(namespace)) throw FORBIDDEN;
        if (broken.has(namespace)) throw BROKEN;
        return { items: (things.get(namespace) ?? []).map(item => project(item as never)), resourceVersion: '1' };
      });
    },
    watch: async function* (_resource: Resource, options: Selection & { readonly signal?: AbortSignal }) {
      for (;;) {
        const next = Promise.withResolvers<WatchEvent<Thing>>();
        watches.set(options.namespace ?? '', { push: next.resolve, fail: next.reject });
        options.signal?.addEventListener('abort', () => next.reject(options.signal?.reason));
        yield (await next.promise) as never;
      }
    },
  } as unknown as Pick<KubeClient, 'list' | 'watch'>;
  const ready = Promise.withResolvers<void>();
  const views = createNamespacedViews<Thing>({
    client,
    resource: THINGS,
    ready: ready.promise,
    clock,
    log: createLogger({ level: 'silent' }),
  });
  const viewOf = (color: string) =>
    views.view(object => (object.color === color ? object.metadata.name : undefined), { name: name => [name] });
  const [red, green] = [viewOf('red'), viewOf('green')];
  const changes: string[] = [];
  red.subscribe((change, key, old, current) => changes.push(`red ${change} ${key} ${old}→${current}`));
  green.subscribe((change, key, old, current) => changes.push(`green ${change} ${key} ${old}→${current}`));
  const accesses: string[] = [];
  views.onAccess(namespace => accesses.push(`${namespace} ${views.access(namespace)}`));
  const stop = new AbortController();
  const running = Promise.all([red.run(stop.signal), green.run(stop.signal)]);
  const end = () => (stop.abort(), running);
  const state = { things, forbidden, broken, silent, watches, lists, connections, clock };
  return { ...state, ready, views, red, green, changes, accesses, end };
}

test('keeps each object in its view, with one list for each namespace', async () => {
  const server = start();
  server.things.set('a', [thing('a', 'rose', 'red'), thing('a', 'fern', 'green'), thing('a', 'stone', 'grey')]);
  server.things.set('b', [thing('b', 'moss', 'green')]);
  for (const namespace of ['a', 'b', 'a']) server.views.open(namespace);
  await server.clock.advance(0);
  expect(server.lists).toEqual(['a', 'b']);
  expect([...server.red.store.keys()]).toEqual(['a/rose']);
  expect([...server.green.store.keys()]).toEqual(['a/fern', 'b/moss']);
  expect(server.green.store.byIndex('name', 'moss')).toEqual(['moss']);

  // When an object changes its color, it moves to the other view.
  server.watches.get('a')?.push({ type: 'MODIFIED', object: thing('a', 'fern', 'red', 2) });
  await server.clock.advance(0);
  expect(server.changes.slice(3)).toEqual(['red added a/fern undefined→fern', 'green deleted a/fern fern→undefined']);
  await server.end();
});

test('a closed namespace removes its objects', async () => {
  const server = start();
  server.things.set('a', [thing('a', 'rose', 'red')]);
  server.views.open('a');
  await server.clock.advance(0);
  server.views.close('a');
  expect([server.red.store.size(), server.views.access('a'), server.views.wasRead('a')]).toEqual([0, 'closed', false]);
  expect(server.changes.at(-1)).toBe('red deleted a/rose rose→undefined');
  await server.end();
});

test('is synced when there is a response for each namespace, even if one is forbidden', async () => {
  const server = start();
  server.forbidden.add('b');
  server.views.open('a');
  server.views.open('b');
  await server.clock.advance(0);
  expect(server.red.hasSynced()).toBe(false);
  server.ready.resolve();
  await server.red.synced;
  expect(server.accesses.toSorted()).toEqual(['a readable', 'b forbidden']);
  expect([server.views.wasRead('a'), server.views.wasRead('b')]).toEqual([true, false]);
  await server.end();
});

test('only waits for 10 s for a namespace whose lists fail, and keeps trying to read it', async () => {
  const server = start();
  server.broken.add('b');
  for (const namespace of ['a', 'b']) server.views.open(namespace);
  server.ready.resolve();
  await server.clock.advance(9_000);
  expect([server.red.hasSynced(), server.views.failure('b')]).toEqual([false, undefined]);
  await server.clock.advance(16_000);
  expect([server.red.hasSynced(), server.views.failure('b'), server.views.failure('a')]).toEqual([
    true,
    BROKEN,
    undefined,
  ]);
  expect([server.views.access('b'), server.views.wasRead('b')]).toEqual(['pending', false]);
  expect(server.accesses).toEqual(['a readable', 'b pending']);
  // This is how a new leader refreshes its caches.
  const relisted = server.red.relist();
  await server.clock.advance(60_000);
  await relisted;
  server.broken.clear();
  await server.clock.advance(120_000);
  expect([server.views.access('b'), server.views.failure('b')]).toEqual(['readable', undefined]);
  await server.end();
});

test('only waits for 10 s for a namespace whose list gets no response', async () => {
  const server = start();
  server.things.set('b', [thing('b', 'rose', 'red')]);
  server.silent.add('b');
  for (const namespace of ['a', 'b']) server.views.open(namespace);
  server.ready.resolve();
  await server.clock.advance(9_999);
  expect([server.red.hasSynced(), server.views.failure('b')]).toEqual([false, undefined]);
  await server.clock.advance(1);
  expect([server.red.hasSynced(), server.views.access('b'), server.accesses]).toEqual([
    true,
    'pending',
    ['a readable', 'b pending'],
  ]);
  expect(server.views.failure('b')).toMatchObject({
    message: 'LIST /apis/x/v1/namespaces/b/things: Timeout: not completed within 10 seconds',
  });
  // The list is still in progress.
  let isDone = false;
  void server.red.relist().then(() => (isDone = true));
  await server.clock.advance(10_000);
  expect([isDone, server.lists]).toEqual([true, ['a', 'b', 'a']]);
  // It has failed, and the next one succeeds.
  server.silent.clear();
  await server.clock.advance(41_000);
  expect([server.views.isCurrent('b'), server.views.failure('b'), server.red.store.size()]).toEqual([
    true,
    undefined,
    1,
  ]);
  await server.end();
});

const MANY = Array.from({ length: 100 }, (_, n) => `n${n}`);

test('lists take turns, do not use all connections, and do not count as failing while they wait', async () => {
  const server = start(3_000);
  for (const namespace of MANY) server.views.open(namespace);
  server.ready.resolve();
  const failing = new Set<string>();
  for (let seconds = 0; seconds < 27; seconds++) {
    await server.clock.advance(1_000);
    for (const namespace of MANY) if (server.views.failure(namespace) !== undefined) failing.add(namespace);
  }
  expect([[...failing], server.red.hasSynced(), server.connections.most]).toEqual([[], true, 12]);
  await server.end();
});

test('lists that take long do not use all connections either, and do not count as failing', async () => {
  const server = start(9_000);
  for (const namespace of MANY) server.views.open(namespace);
  server.ready.resolve();
  const failing = new Set<string>();
  for (let seconds = 0; seconds < 70; seconds++) {
    await server.clock.advance(1_000);
    for (const namespace of MANY) if (server.views.failure(namespace) !== undefined) failing.add(namespace);
  }
  expect([[...failing], server.red.hasSynced(), server.connections.most]).toEqual([[], true, 15]);
  await server.end();
});

test('namespaces whose lists get no response do not count the others as failing', async () => {
  const server = start();
  for (const namespace of MANY.slice(0, 12)) server.silent.add(namespace);
  for (const namespace of MANY) server.views.open(namespace);
  server.ready.resolve();
  await server.clock.advance(10_000);
  expect(MANY.filter(namespace => server.views.failure(namespace) !== undefined)).toEqual(MANY.slice(0, 12));
  expect(server.red.hasSynced()).toBe(true);
  await server.end();
});

test('only waits for 15 s if no list of any namespace gets a response', async () => {
  const server = start();
  for (const namespace of MANY) server.silent.add(namespace);
  for (const namespace of MANY) server.views.open(namespace);
  server.ready.resolve();
  await server.clock.advance(9_999);
  expect(MANY.filter(namespace => server.views.failure(namespace) !== undefined)).toEqual([]);
  await server.clock.advance(5_001);
  expect(server.red.hasSynced()).toBe(true);
  expect(server.views.failure('n99')).toMatchObject({
    message:
      'LIST /apis/x/v1/namespaces/n99/things: Timeout: not sent yet, because the API server does not complete the lists of other namespaces in time',
  });
  server.silent.clear();
  await server.clock.advance(200_000);
  expect(MANY.filter(namespace => server.views.access(namespace) !== 'readable')).toEqual([]);
  expect(MANY.filter(namespace => server.views.failure(namespace) !== undefined)).toEqual([]);
  await server.end();
});

test.each(['broken', 'silent'] as const)(
  'after a relist that has failed, the objects are outdated until they have been listed again (%s)',
  async how => {
    const server = start();
    server.things.set('a', [thing('a', 'rose', 'red')]);
    for (const namespace of ['a', 'b']) server.views.open(namespace);
    await server.clock.advance(0);
    const isCurrent = () => ['a', 'b'].map(server.views.isCurrent);
    expect(isCurrent()).toEqual([true, true]);
    // The watch has missed this change.
    server.things.set('a', []);
    server[how].add('a');
    const relisted = server.red.relist();
    await server.clock.advance(how === 'silent' ? 10_000 : 60_000);
    await relisted;
    expect([isCurrent(), server.views.wasRead('a'), server.red.store.size()]).toEqual([[false, true], true, 1]);
    server.accesses.length = 0;
    server[how].clear();
    await server.clock.advance(120_000);
    expect([isCurrent(), server.accesses, server.red.store.size()]).toEqual([[true, true], ['a readable'], 0]);
    await server.end();
  },
);

test('a relist does not wait for a forbidden namespace, and detects granted access', async () => {
  const server = start();
  server.forbidden.add('a');
  server.things.set('a', [thing('a', 'rose', 'red')]);
  server.views.open('a');
  await server.clock.advance(0);
  const listed = server.lists.length;
  await server.red.relist();
  expect(server.lists.length).toBe(listed + 1);
  server.forbidden.clear();
  await server.views.retry('a');
  expect([server.views.access('a'), [...server.red.store.keys()]]).toEqual(['readable', ['a/rose']]);
  await server.end();
});

test('keeps its objects if a namespace becomes forbidden', async () => {
  const server = start();
  server.things.set('a', [thing('a', 'rose', 'red')]);
  server.views.open('a');
  await server.clock.advance(0);
  server.forbidden.add('a');
  server.watches.get('a')?.fail(FORBIDDEN);
  await server.clock.advance(0);
  expect([server.views.access('a'), server.views.wasRead('a')]).toEqual(['forbidden', true]);
  expect([...server.red.store.keys()]).toEqual(['a/rose']);
  // The interval between the requests increases.
  await server.clock.advance(600_000);
  expect(server.lists.length).toBeLessThan(25);
  await server.end();
});

test('detects that access is granted again if only the start of a watch was forbidden', async () => {
  const server = start();
  server.views.open('a');
  await server.clock.advance(0);
  server.watches.get('a')?.fail(FORBIDDEN);
  await server.clock.advance(1_000);
  expect(server.views.access('a')).toBe('forbidden');
  server.watches.get('a')?.push({ type: 'BOOKMARK', object: thing('a', 'rose', 'red', 2) });
  await server.clock.advance(0);
  expect([server.views.access('a'), server.lists]).toEqual(['readable', ['a']]);
  expect(server.accesses).toEqual(['a readable', 'a forbidden', 'a readable']);
  await server.end();
});

import { describe, expect, test } from 'vitest';
import { objectOf } from '../../../../test/support/controller/test-context.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import { createStore, type Indexers } from '../../../kube/store.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { type Cached, type Caches, INDEXES } from '../../caches/caches.ts';
import type { HeaderSecret } from '../../caches/secret-caches.ts';
import { createHeaderSecrets, READ_AGAIN_MS } from './header-secrets.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');

type Named = readonly [secret: string, key: string];

function subscription(
  name: string,
  named: readonly Named[],
  producer = 'acme',
  uid = name,
  namespace = 'globex',
): Cached<'Subscription'> {
  const headers = named.map(([secret, key], i) => ({
    name: `x-${i}`,
    valueFrom: { secretKeyRef: { name: secret, key } },
  }));
  const endpoint = { url: 'https://globex.example/', headers: [{ name: 'x-plain', value: 'plain' }, ...headers] };
  return objectOf<'Subscription'>(
    name,
    { producer, integration: 'globex', stream: 'orders', ordering: 'ByGroupKey', deletionPolicy: 'Retain', endpoint },
    { namespace, metadata: { uid } },
  );
}

/**
 * Caches along with the API server's Secrets. `watched` contains the Secrets that the watch has delivered so far.
 */
function start() {
  const subscriptions = createStore<Cached<'Subscription'>>(INDEXES.Subscription as Indexers<Cached<'Subscription'>>);
  const watched = createStore<HeaderSecret>();
  const server = new Map<string, { version: string; type?: string; data?: Record<string, string> } | Error>();
  const reads: string[] = [];
  const timeouts = new Set<number | undefined>();
  const again: string[] = [];
  const unread: { why: { readonly why?: string } | undefined } = { why: undefined };
  /** The responses to the next reads wait for these. */
  const delays: Promise<void>[] = [];
  let atOnce = 0;
  let mostAtOnce = 0;
  const secrets = createHeaderSecrets({
    caches: { Subscription: { store: subscriptions }, headerSecrets: { store: watched } } as unknown as Caches,
    client: {
      get: async (_resource, { namespace, name }, { timeoutMs } = {}) => {
        reads.push(`${namespace}/${name}`);
        timeouts.add(timeoutMs);
        mostAtOnce = Math.max(mostAtOnce, ++atOnce);
        const found = server.get(`${namespace}/${name}`);
        await (delays.shift() ?? Promise.resolve());
        atOnce--;
        if (found instanceof Error) throw found;
        const { version, ...rest } = found ?? { version: '' };
        return (found && { ...rest, metadata: { name, namespace, uid: name, resourceVersion: version } }) as never;
      },
    },
    unread: () => unread.why,
    enqueueAfter: (tenant, delayMs) => again.push(`${tenant} ${delayMs}`),
    log: createLogger({ level: 'silent' }),
  });
  const hear = (key: string, version: string) => watched.set(key, { key, resourceVersion: version });
  return {
    secrets,
    reads,
    timeouts,
    again,
    unread,
    delays,
    server,
    hear,
    forget: (key: string) => watched.remove(key),
    mostAtOnce: () => mostAtOnce,
    add: (object: Cached<'Subscription'>) => {
      subscriptions.set(`${object.metadata.namespace}/${object.metadata.name}`, object);
      return object;
    },
    put: (name: string, version: string, data: Record<string, string>, type = 'Opaque', namespace = 'globex') => {
      server.set(`${namespace}/${name}`, { version, type, data });
      hear(`${namespace}/${name}`, version);
    },
  };
}

describe('header secrets', () => {
  test('are read once for each version, and only the referenced fields are stored', async () => {
    const { secrets, reads, add, put } = start();
    const object = add(subscription('orders', [['token', 'bearer']]));
    put('token', '1', { bearer: base64('Bearer 1'), other: base64('unnamed') });
    for (let n = 0; n < 3; n++) await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ value: 'Bearer 1' }]);
    expect(reads).toEqual(['globex/token']);
    put('token', '2', { bearer: base64('Bearer 2') });
    expect(secrets.fieldsOf(object)).toEqual([{ value: 'Bearer 1' }]);
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ value: 'Bearer 2' }]);
    expect(reads).toHaveLength(2);
  });

  test('are read again when a key is referenced for the first time', async () => {
    const { secrets, reads, add, put } = start();
    add(subscription('orders', [['token', 'a']]));
    put('token', '1', { a: base64('A'), b: base64('B') });
    await secrets.read('acme');
    const both = add(
      subscription('returns', [
        ['token', 'b'],
        ['token', 'a'],
        ['token', 'none'],
      ]),
    );
    await secrets.read('acme');
    expect(secrets.fieldsOf(both)).toEqual([{ value: 'B' }, { value: 'A' }, { fault: 'key_missing' }]);
    await secrets.read('acme');
    expect(reads).toHaveLength(2);
  });

  test('of other tenants, and missing Secrets, are not read', async () => {
    const { secrets, reads, add, put } = start();
    add(subscription('foreign', [['token', 'a']], 'initech'));
    const object = add(subscription('orders', [['absent', 'a']]));
    put('token', '1', { a: base64('A') });
    await secrets.read('acme');
    expect(reads).toEqual([]);
    expect(secrets.fieldsOf(object)).toEqual([{ fault: 'secret_missing' }]);
    expect(secrets.fieldsOf(objectOf<'Subscription'>('plain', {} as never))).toBeUndefined();
  });

  test('that were deleted have no value, even if they were read before', async () => {
    const { secrets, add, put, forget } = start();
    const object = add(subscription('orders', [['token', 'a']]));
    put('token', '1', { a: base64('A') });
    await secrets.read('acme');
    forget('globex/token');
    expect(secrets.fieldsOf(object)).toEqual([{ fault: 'secret_missing' }]);
  });

  test('with credentials of the cluster are treated as missing, even if the watch contains one', async () => {
    const { secrets, add, put } = start();
    const object = add(subscription('orders', [['robot', 'token']]));
    put('robot', '1', { token: base64('eyJ') }, 'kubernetes.io/service-account-token');
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ fault: 'secret_missing' }]);
  });

  test('are requested again if the API server does not return them, and older values are kept', async () => {
    const { secrets, again, server, add, put, hear } = start();
    const object = add(subscription('orders', [['token', 'a']]));
    server.set('globex/token', new Error('unavailable'));
    hear('globex/token', '1');
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ fault: 'secret_unread' }]);
    expect(again).toEqual([`acme ${READ_AGAIN_MS}`]);
    put('token', '1', { a: base64('A') });
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ value: 'A' }]);
    server.set('globex/token', new Error('unavailable'));
    hear('globex/token', '2');
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ value: 'A' }]);
    expect(again).toHaveLength(2);
  });

  test('that cannot be read say why', async () => {
    const { secrets, server, unread, add, hear } = start();
    const object = add(subscription('orders', [['token', 'a']]));
    const detail = 'secrets "token" is forbidden';
    const refused = new KubeError({ call: 'GET /token', status: 403, reason: 'Forbidden', detail });
    server.set('globex/token', refused);
    hear('globex/token', '1');
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([
      { fault: 'secret_unread', why: `Sluice cannot read the Secret: ${refused.message}. It keeps trying` },
    ]);
    unread.why = {};
    expect(secrets.fieldsOf(object)).toEqual([{ fault: 'secret_unread' }]);
    unread.why = { why: 'the namespace is forbidden' };
    expect(secrets.fieldsOf(object)).toEqual([{ fault: 'secret_unread', why: 'the namespace is forbidden' }]);
  });

  describe('for which a response arrives after that to a later read', () => {
    async function race(change: (of: ReturnType<typeof start>) => void) {
      const of = start();
      of.put('token', '1', { a: base64('A1'), b: base64('B1') });
      of.add(subscription('orders', [['token', 'a']]));
      const { promise, resolve } = Promise.withResolvers<void>();
      of.delays.push(promise);
      const early = of.secrets.read('acme');
      const object = of.add(subscription('returns', [['token', 'b']], 'initech'));
      change(of);
      await of.secrets.read('initech');
      resolve();
      await early;
      return of.secrets.fieldsOf(object);
    }

    test('keep the fields that only the later read has returned', async () => {
      expect(await race(() => {})).toEqual([{ value: 'B1' }]);
    });

    test('keep the newer version', async () => {
      expect(await race(({ put }) => put('token', '2', { a: base64('A2'), b: base64('B2') }))).toEqual([
        { value: 'B2' },
      ]);
    });

    test('are not lost if the earlier read has found none', async () => {
      const of = start();
      of.hear('globex/token', '1');
      const object = of.add(subscription('returns', [['token', 'b']], 'initech'));
      of.add(subscription('orders', [['token', 'b']]));
      const { promise, resolve } = Promise.withResolvers<void>();
      of.delays.push(promise);
      const early = of.secrets.read('acme');
      of.put('token', '2', { b: base64('B2') });
      await of.secrets.read('initech');
      resolve();
      await early;
      expect(of.secrets.fieldsOf(object)).toEqual([{ value: 'B2' }]);
    });
  });

  test('are read a few at a time if there are many', async () => {
    const { secrets, reads, add, put, mostAtOnce } = start();
    for (let n = 0; n < 100; n++) {
      add(subscription(`s${n}`, [[`token-${n}`, 'a']]));
      put(`token-${n}`, '1', { a: base64('A') });
    }
    await secrets.read('acme');
    expect(new Set(reads).size).toBe(100);
    expect(reads).toHaveLength(100);
    expect(mostAtOnce()).toBe(16);
  });

  test('of a namespace are not read after one of them has received no response in time', async () => {
    const { secrets, reads, timeouts, again, server, hear, add, put } = start();
    const late = Array.from({ length: 100 }, (_, n) => `late-${n}`);
    for (const name of late) {
      add(subscription(name, [[name, 'a']]));
      server.set(`globex/${name}`, new KubeError({ call: 'GET secrets', status: 0, reason: 'Timeout' }));
      hear(`globex/${name}`, '1');
    }
    const object = add(subscription('orders', [['token', 'a']], 'acme', 'other', 'initech'));
    put('token', '1', { a: base64('A') }, 'Opaque', 'initech');
    await secrets.read('acme');
    expect(secrets.fieldsOf(object)).toEqual([{ value: 'A' }]);
    // Those that were already in progress.
    expect(reads.length).toBeLessThanOrEqual(17);
    expect([...timeouts]).toEqual([10_000]);
    // They are read again, which has a timeout as well.
    expect(again).toHaveLength(100);
    reads.length = 0;
    for (const name of late) put(name, '1', { a: base64('A') });
    await secrets.read('acme');
    expect(reads).toHaveLength(100);
  });
});

test('are read once if thousands of subscriptions reference one Secret, and the time does not grow quadratically', async () => {
  const { secrets, reads, add, put } = start();
  for (let n = 0; n < 5_000; n++) add(subscription(`s${n}`, [['token', 'a']]));
  put('token', '1', { a: base64('A') });
  const startedMs = performance.now();
  await secrets.read('acme');
  await secrets.read('acme');
  // Two passes of 5,000 × 5,000 lookups would take seconds.
  expect(performance.now() - startedMs).toBeLessThan(1_000);
  expect(reads).toEqual(['globex/token']);
});

import { describe, expect, test } from 'vitest';
import { keyRingOf } from '../delivery/key-ring.ts';
import { publicId } from '../ids/ids.ts';
import { closeRoutes } from './close-routes.ts';
import { compileRoutes } from './compile-routes.ts';
import type { BlockSnapshot, TenantSnapshot } from './snapshot.ts';

const NOW = 1_000;
const meta = (name: string, namespace = 'acme') => ({
  name,
  namespace,
  uid: `uid-${name}`,
  createdMs: 1,
  deleting: false,
});
const INTEGRATION = publicId('Integration', 'acme', 'globex');
const SUBSCRIPTION = publicId('Subscription', 'globex', 'acme-orders');

const snapshot = {
  name: 'acme',
  workspace: { spec: { account: 'acme' } },
  secretKeys: [],
  streams: ['orders', 'refunds'].map(name => ({
    ...meta(name),
    spec: { public: true, retention: '1h', deletionPolicy: 'Retain' },
  })),
  packages: [{ ...meta('basics'), spec: { streams: ['orders'] } }],
  integrations: [{ ...meta('globex'), spec: { workspace: 'globex' } }],
  blocks: [],
  subscriptions: ['orders', 'refunds'].map(stream => ({
    ...meta(`acme-${stream}`, 'globex'),
    salt: 'a-salt',
    spec: {
      producer: 'acme',
      integration: 'globex',
      stream,
      ordering: 'ByGroupKey',
      deletionPolicy: 'Retain',
      endpoint: { url: 'https://globex.example' },
    },
  })),
} as unknown as TenantSnapshot;
const block = (kind: string, name: string, onUnblock = 'Continue') =>
  ({ ...meta(`no-${name}`), spec: { integration: 'globex', target: { kind, name }, onUnblock } }) as BlockSnapshot;
const compile = (objects: TenantSnapshot) =>
  compileRoutes(objects, {
    nowMs: NOW,
    queueMaxBytes: 1,
    judgeEndpoint: () => 'ok',
    sealEndpoint: () => 'sealed',
    openHeader: () => '',
    keys: keyRingOf(new Uint8Array(32)),
  }).routes;
const stored = compile(snapshot);

function close(changes: Partial<TenantSnapshot>, from = stored) {
  const { routes, closed, paused } = closeRoutes(from, { ...snapshot, ...changes }, NOW);
  const integration = routes.integrations[INTEGRATION];
  return {
    routes,
    integration,
    orders: integration?.subscriptions[SUBSCRIPTION],
    closed: [...closed],
    paused: [...paused],
  };
}

describe('closing changes', () => {
  test.each([
    ['CatalogStream', 'orders'],
    ['Package', 'basics'],
  ])('a Block of a %s only holds events to which it applies', (kind, name) => {
    const { routes, orders, closed, paused } = close({ blocks: [block(kind, name, 'SkipToNow')] });
    expect(orders).toMatchObject({ route: 'paused', send: 'held', onUnblock: 'skip', endpoint: 'sealed' });
    expect(closed).toEqual([['uid-acme-orders', 'Blocked']]);
    expect(paused).toEqual([[`uid-no-${name}`, 1]]);
    const refunds = publicId('Subscription', 'globex', 'acme-refunds');
    expect(routes.integrations[INTEGRATION]?.subscriptions[refunds]).toBe(
      stored.integrations[INTEGRATION]?.subscriptions[refunds],
    );
    expect(routes.queues).toBe(stored.queues);
  });

  test.each([{ revoked: true }, { declined: true }])('an integration that is %j is closed', change => {
    const { integration, orders, closed } = close({
      integrations: snapshot.integrations.map(each => ({ ...each, spec: { ...each.spec, ...change } })),
    });
    expect(integration?.state).toBe('closed');
    expect(orders).toMatchObject({ route: 'closed', send: 'held', endpoint: '' });
    expect(closed).toEqual([
      ['uid-acme-orders', 'Ended'],
      ['uid-acme-refunds', 'Ended'],
    ]);
  });

  test('a deleted integration is closed', () => {
    expect(close({ integrations: [] })).toMatchObject({
      integration: { state: 'closed' },
      orders: { route: 'closed' },
    });
  });

  test.each<[string, (each: TenantSnapshot['subscriptions'][number]) => object[]]>([
    ['is deleted', each => [{ ...each, deleting: true }]],
    ['is deleted', () => []],
    ['was recreated', each => [{ ...each, uid: 'uid-another' }]],
  ])('a subscription that %s is closed', (_what, change) => {
    const [first, ...others] = snapshot.subscriptions;
    const subscriptions = [...change(first as never), ...others] as TenantSnapshot['subscriptions'];
    const { orders, integration } = close({ subscriptions });
    expect(orders).toMatchObject({ route: 'closed', send: 'held', endpoint: '' });
    expect(integration?.state).toBe('active');
  });
});

describe('ingress keys', () => {
  const until = (ms: number) => new Date(ms).toISOString();
  const keysLeft = (keys: Record<string, string>, changes: Partial<TenantSnapshot>) =>
    close(changes, { ...stored, keys }).routes.keys;
  const ingressKeys = (...keys: [sha256: string, expiresAt?: string][]) => ({
    workspace: {
      spec: { account: 'acme', ingressKeys: keys.map(([sha256, expiresAt]) => ({ id: sha256, sha256, expiresAt })) },
    } as unknown as NonNullable<TenantSnapshot['workspace']>,
  });

  test('are closed if they are removed, and new ones are not opened', () => {
    const changes = { ...ingressKeys(['a'], ['new']), secretKeys: ['b', 'newer'] };
    expect(keysLeft({ a: '', b: '', leaked: '', expired: '5' }, changes)).toEqual({ a: '', b: '' });
  });

  test('may end earlier, but not later', () => {
    const changes = ingressKeys(['earlier', until(2_000)], ['later', until(9_000)], ['never'], ['once', until(4_000)]);
    const stands = { earlier: '5000', later: '5000', never: '5000', once: '' };
    expect(keysLeft(stands, changes)).toEqual({ earlier: '2000', later: '5000', never: '5000', once: '4000' });
  });

  test('stay the same object if nothing is closed, or the workspace is not known', () => {
    const routes = { ...stored, keys: { a: '', b: '5' } };
    const same = ingressKeys(['a'], ['b'], ['c']);
    expect(closeRoutes(routes, { ...snapshot, ...same }, NOW).routes).toBe(routes);
    const { workspace: _, ...unknown } = snapshot;
    expect(closeRoutes(routes, unknown, NOW).routes).toBe(routes);
  });
});

describe('all other changes are ignored', () => {
  test.each<[string, Partial<TenantSnapshot>]>([
    ['nothing changed', {}],
    ['a new stream', { streams: [...snapshot.streams, { ...snapshot.streams[0], name: 'new' }] as never }],
    ['no stream', { streams: [] }],
    [
      'deprecated streams',
      { streams: snapshot.streams.map(each => ({ ...each, spec: { ...each.spec, public: false } })) },
    ],
    [
      'suspended subscriptions',
      { subscriptions: snapshot.subscriptions.map(each => ({ ...each, spec: { ...each.spec, suspended: true } })) },
    ],
    [
      'another endpoint',
      {
        subscriptions: snapshot.subscriptions.map(each => ({
          ...each,
          spec: { ...each.spec, endpoint: { url: 'https://other.example' } },
        })) as never,
      },
    ],
    ['a namespace that does not belong to the workspace anymore', { ...snapshot, workspace: undefined } as never],
  ])('%s', (_what, changes) => {
    expect(close(changes).routes).toBe(stored);
  });

  test('does not open closed routes', () => {
    const blocked = close({ blocks: [block('CatalogStream', 'orders')] }).routes;
    expect(close({}, blocked).routes).toBe(blocked);
    const ended = close({ integrations: [] }).routes;
    expect(close({}, ended).routes).toBe(ended);
  });

  test('a pause that skips its backlog continues to skip it', () => {
    const blocked = close({ blocks: [block('CatalogStream', 'orders')] }).routes;
    expect(close({ blocks: [block('CatalogStream', 'orders', 'SkipToNow')] }, blocked).routes).toBe(blocked);
  });
});

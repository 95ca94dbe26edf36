import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../test/support/controller/test-context.ts';
import { finish } from '../../core/routing/steps.ts';
import { gatherTenant } from './snapshot.ts';

const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const workspace = (metadata: object = {}) =>
  objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined, metadata });
const stream = (name: string, metadata: object = {}) =>
  objectOf<'CatalogStream'>(name, { public: true, retention: '1h', deletionPolicy: 'Retain' }, { metadata });
function stateOf(objects: Parameters<typeof createTestContext>[0], home?: object, isRecentlyGone = false) {
  const { caches } = createTestContext(objects).context;
  const namespaces = { store: { get: () => home } } as unknown as typeof caches.namespaces;
  const { workspace, held } = finish(
    gatherTenant(
      { ...caches, namespaces },
      () => false,
      'acme',
      () => false,
      () => undefined,
      () => isRecentlyGone,
    ),
  );
  return workspace === undefined ? (held ? 'held' : 'closed') : 'open';
}

describe('a tenant', () => {
  const own = { workspace: 'acme', deleting: false };
  test('is open while its workspace owns the namespace', () => {
    expect(stateOf({ Workspace: [workspace()] }, own)).toBe('open');
  });

  test('is closed without a workspace, and while the workspace is being deleted', () => {
    for (const home of [own, undefined]) {
      expect(stateOf({}, home)).toBe('closed');
      expect(stateOf({ Workspace: [workspace(DELETED)] }, home)).toBe('closed');
      expect(stateOf({ Workspace: [workspace({ finalizers: [] })] }, home)).toBe('closed');
    }
  });

  test('is held while the label of the namespace is missing, or is that of another workspace', () => {
    expect(stateOf({ Workspace: [workspace()] }, undefined)).toBe('held');
    expect(stateOf({ Workspace: [workspace()] }, { ...own, workspace: 'other' })).toBe('held');
  });

  test('is held if it was deleted just now, until a new one is protected', () => {
    for (const objects of [{}, { Workspace: [workspace(DELETED)] }, { Workspace: [workspace({ finalizers: [] })] }]) {
      expect(stateOf(objects, own, true)).toBe('held');
    }
    expect(stateOf({ Workspace: [workspace()] }, own, true)).toBe('open');
    expect(stateOf({}, { ...own, deleting: true }, true)).toBe('closed');
  });

  test('is closed while its namespace is being deleted, because a Block may be removed first', () => {
    expect(stateOf({ Workspace: [workspace()] }, { ...own, deleting: true })).toBe('closed');
  });
});

test('an account that does not exist has no tokens', () => {
  const { context } = createTestContext({ Workspace: [workspace()] });
  expect(finish(gatherTenant(context.caches, () => false, 'acme')).account).toEqual({ plan: '', short: true });
});

test('header values are those of the same moment as the objects', () => {
  const headers = [{ name: 'x-key', valueFrom: { secretKeyRef: { name: 'token', key: 'a' } } }];
  const spec = { producer: 'acme', integration: 'globex', stream: 'orders', endpoint: { url: 'https://x', headers } };
  const subscription = objectOf<'Subscription'>('acme-orders', spec as never, { namespace: 'globex' });
  const { context } = createTestContext({ Workspace: [workspace()], Subscription: [subscription] });
  let value = 'before';
  const gathering = gatherTenant(
    context.caches,
    () => false,
    'acme',
    () => false,
    () => [{ value }],
  );
  value = 'after';
  expect(finish(gathering).subscriptions[0]?.headerFields).toEqual([{ value: 'before' }]);
});

describe('a snapshot', () => {
  test('includes protected objects, and no deleted ones', () => {
    const streams = [stream('orders'), stream('bare', { finalizers: [] }), stream('gone', DELETED), stream('removed')];
    const { context } = createTestContext({ Workspace: [workspace()], CatalogStream: streams });
    const snapshot = finish(gatherTenant(context.caches, uid => uid === 'uid-removed', 'acme'));
    expect(snapshot.streams.map(({ name, deleting }) => `${name} ${deleting}`)).toEqual(['orders false', 'gone true']);
  });

  test('includes objects that lost their finalizer, unless they are being deleted', () => {
    const status = { publicId: 'an-id' };
    const subscription = (name: string, metadata: object = {}) =>
      objectOf<'Subscription'>(
        name,
        { producer: 'acme', integration: 'globex', stream: 'orders', ordering: 'None', deletionPolicy: 'Retain' },
        { namespace: 'globex', metadata: { finalizers: [], ...metadata }, status },
      );
    const bare = { ...workspace({ finalizers: [] }), status };
    const { context } = createTestContext({
      Workspace: [bare],
      CatalogStream: [{ ...stream('orders', { finalizers: [] }), status }],
      Subscription: [subscription('replaced'), subscription('gone', DELETED)],
    });
    const snapshot = finish(gatherTenant(context.caches, () => false, 'acme'));
    expect(snapshot.workspace?.spec).toEqual(bare.spec);
    expect([...snapshot.streams, ...snapshot.subscriptions].map(({ name }) => name)).toEqual(['orders', 'replaced']);
  });

  test('includes each package and block until it is removed', () => {
    const target = { kind: 'Package', name: 'sales' } as const;
    const { context } = createTestContext({
      Workspace: [workspace()],
      Package: [objectOf<'Package'>('sales', { streams: ['orders'] }, { metadata: DELETED })],
      Block: [objectOf<'Block'>('b', { integration: 'globex', target, onUnblock: 'Continue' }, { metadata: DELETED })],
    });
    const { packages, blocks } = finish(gatherTenant(context.caches, () => false, 'acme'));
    expect([...packages, ...blocks].map(({ name }) => name)).toEqual(['sales', 'b']);
  });
});

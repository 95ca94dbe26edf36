import { describe, expect, test } from 'vitest';
import { keyRingOf } from '../../core/delivery/key-ring.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import type { StoredRoutes } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
import { createTenants } from './tenants.ts';

const meta = (name: string, namespace = 'acme') => ({
  name,
  namespace,
  uid: `uid-${name}`,
  createdMs: 1,
  deleting: false,
});

/** A tenant with one stream, one subscribed partner, and the Blocks specified by the test. */
function snapshotOf(blocks: readonly string[], more: readonly string[] = []): TenantSnapshot {
  return {
    name: 'acme',
    workspace: { spec: { account: 'acme' } },
    secretKeys: [],
    streams: ['orders', ...more].map(name => ({
      ...meta(name),
      spec: { public: true, retention: '1h', deletionPolicy: 'Retain' },
    })),
    packages: [],
    integrations: ['globex', ...more].map(name => ({ ...meta(name), spec: { workspace: name } })),
    blocks: blocks.map(name => ({
      ...meta(name),
      spec: { integration: 'globex', target: { kind: 'CatalogStream', name: 'orders' }, onUnblock: 'Continue' },
    })),
    subscriptions: [
      {
        ...meta('acme-orders', 'globex'),
        spec: {
          producer: 'acme',
          integration: 'globex',
          stream: 'orders',
          ordering: 'ByGroupKey',
          deletionPolicy: 'Retain',
        },
      },
    ],
  } as TenantSnapshot;
}

/** Tenants using a Redis that only counts calls. */
function start() {
  const state = {
    paused: false,
    blocks: [] as string[],
    more: [] as string[],
    calls: [] as string[],
    changed: [] as unknown[],
  };
  const nothing: StoredRoutes = {
    ready: new Set(),
    routes: { tenant: 'ten_x', payer: '', keys: {}, queues: {}, integrations: {} } as unknown as StoredRoutes['routes'],
  };
  const control = new Proxy({} as ControlStore, {
    get: (_target, name: string) => async () => {
      state.calls.push(name);
      if (name === 'readTenant') return nothing;
      if (name === 'readActivations') return new Map();
      return new Set();
    },
  });
  const tenants = createTenants({
    control,
    nowMs: () => 1_000,
    compile: {
      queueMaxBytes: 1,
      judgeEndpoint: () => 'ok',
      sealEndpoint: () => 'sealed',
      openHeader: () => '',
      keys: keyRingOf(new Uint8Array(32)),
    },
    fence: () => 1,
    explain: error => error,
    prepare: async () => {},
    gather: () => snapshotOf(state.blocks, state.more),
    objectsOf: () => [],
    isPaused: () => state.paused,
    openGates: () => new Map(),
    exclusively: (_name, restore) => restore(),
    onChanged: (_name, uids) => state.changed.push(uids === 'all' ? uids : [...uids].toSorted()),
  });
  return { tenants, state };
}

describe('tenants', () => {
  test('tell which subscriptions and blocks the routes say something else of', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    expect(state.changed.splice(0)).toEqual(['all']);
    await tenants.sync('acme');
    expect(state.changed.splice(0)).toEqual([[]]);
    state.blocks = ['b1'];
    await tenants.sync('acme');
    expect(state.changed.splice(0)).toEqual([['uid-acme-orders', 'uid-b1']]);
    state.blocks = ['b1', 'b2'];
    await tenants.sync('acme');
    expect(state.changed.splice(0)).toEqual([['uid-b2']]);
    state.blocks = [];
    await tenants.sync('acme');
    expect(state.changed.splice(0)).toEqual([['uid-acme-orders', 'uid-b1', 'uid-b2']]);
  });

  test('are not read again after a removal if the rest is known', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    const left = (routes: TenantRoutes): TenantRoutes => ({ ...routes, integrations: {} });
    const read = async (): Promise<boolean> => {
      state.calls.length = 0;
      await tenants.sync('acme');
      return state.calls.includes('readTenant');
    };
    await tenants.remove('acme', 'uid-1', async () => {}, left);
    expect(tenants.stored('acme')?.routes.integrations).toEqual({});
    expect(tenants.isRemoved('uid-1')).toBe(true);
    expect(await read()).toBe(false);
    expect(Object.keys(tenants.stored('acme')?.routes.integrations ?? {})).toHaveLength(1);
    await tenants.remove('acme', 'uid-2', async () => {});
    expect(await read()).toBe(true);
    const failing = tenants.remove('acme', 'uid-3', () => Promise.reject(new Error('away')), left);
    await expect(failing).rejects.toThrow('away');
    expect(tenants.isRemoved('uid-3')).toBe(false);
    expect(await read()).toBe(true);
    await tenants.remove('acme', 'uid-4', async () => tenants.forget('all'), left);
    expect(await read()).toBe(true);
  });

  test('check the activations of new objects only', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    expect(state.calls.filter(each => each.startsWith('read'))).toEqual(['readTenant', 'readActivations']);
    state.calls.length = 0;
    state.blocks = ['b1'];
    await tenants.sync('acme');
    expect(state.calls.filter(each => each.startsWith('read'))).toEqual([]);
    state.more = ['initech'];
    await tenants.sync('acme');
    expect(state.calls.filter(each => each.startsWith('read'))).toEqual(['readActivations']);
  });

  test('that are paused are not written, and are read again after the pause', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    state.calls.length = 0;
    state.changed.length = 0;
    state.paused = true;
    state.blocks = ['b1'];
    await tenants.sync('acme');
    await tenants.sync('acme');
    // Only writes its name, which already exists. Reads everything once and closes open group keys without a record.
    expect(state.calls).toEqual(['enlist', 'readTenant', 'closeParts', 'enlist']);
    expect(tenants.isSynced('acme')).toBe(false);
    expect(state.changed).toEqual([[], []]);
    state.changed.length = 0;
    state.paused = false;
    await tenants.sync('acme');
    expect(state.calls).toContain('readTenant');
    expect(state.calls).toContain('readActivations');
    expect(state.changed).toEqual(['all']);
  });
});

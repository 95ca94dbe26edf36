import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { stepsOf } from '../../../test/support/controller/steps.ts';
import { turnsOf } from '../../../test/support/event-loop-turns.ts';
import { keyRingOf } from '../../core/delivery/key-ring.ts';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import type { TenantSnapshot } from '../../core/routing/snapshot.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { SlotPatch, StoredRoutes } from '../../record/control-plan.ts';
import type { ControlStore } from '../../record/control-store.ts';
import { tenantKeys } from '../../redis/keys.ts';
import { SecretsUnreadableError } from '../engine/outcome.ts';
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

/** Creates tenants with a Redis that only counts calls. */
function start() {
  const state = {
    paused: false,
    nowMs: 1_000,
    blocks: [] as string[],
    more: [] as string[],
    calls: [] as string[],
    changed: [] as unknown[],
    gathered: 0,
    epoch: 1,
    /** The fencing epochs of all writes. */
    fences: new Set<unknown>(),
    patches: [] as SlotPatch[],
    objects: [] as AnyObject[],
    /** All writes of parts wait for this promise. */
    writing: Promise.resolve(),
    onPrepare: () => {},
    knowsKeys: true,
    secretKeys: [] as string[],
    stored: {} as Partial<StoredRoutes['routes']>,
  };
  const read = (): StoredRoutes => ({
    ready: new Set(),
    routes: { tenant: 'ten_x', payer: '', plan: '', keys: {}, queues: {}, integrations: {}, ...state.stored },
  });
  const control = new Proxy({} as ControlStore, {
    get: (_target, name: string) => async (first: unknown, patches: unknown) => {
      state.calls.push(name);
      if (name === 'applyParts') {
        state.fences.add((first as { fence: number }).fence);
        await state.writing;
      }
      if (name === 'patch') {
        state.fences.add(first);
        state.patches.push(...(patches as SlotPatch[]));
      }
      if (name === 'readTenant') return read();
      if (name === 'readActivations') return new Map();
      return new Set();
    },
  });
  const tenants = createTenants({
    control,
    nowMs: () => state.nowMs,
    compile: {
      queueMaxBytes: 1,
      judgeEndpoint: () => 'ok',
      sealEndpoint: () => 'sealed',
      openHeader: () => '',
      keys: keyRingOf(new Uint8Array(32)),
    },
    fence: () => state.epoch,
    explain: error => error,
    prepare: async () => state.onPrepare(),
    gather: () => {
      const { blocks, more, secretKeys } = state;
      state.gathered++;
      return stepsOf({ ...snapshotOf(blocks, more), secretKeys });
    },
    objectsOf: () => state.objects,
    knowsKeys: () => state.knowsKeys,
    isPaused: () => state.paused,
    openGates: () => new Map(),
    exclusively: (_name, restore) => restore(),
    onChanged: (_name, uids) => state.changed.push(uids === 'all' ? uids : [...uids].toSorted()),
  });
  return { tenants, state };
}

describe('a tenant with many objects', () => {
  const many = Array.from({ length: 100_000 }, (_, i) => `b${i}`);

  test('is compiled once for all objects that change at the same time', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    state.gathered = 0;
    const synced: Promise<void>[] = [];
    for (const name of many.slice(0, 300)) {
      state.blocks = [...state.blocks, name];
      synced.push(tenants.sync('acme'));
      await Promise.resolve();
    }
    await Promise.all(synced);
    expect(state.gathered).toBe(1);
    expect(tenants.compiled('acme')?.paused.size).toBe(300);
  });

  test('does not block the event loop while it is compiled and compared', async () => {
    const { tenants, state } = start();
    state.blocks = many;
    // With this clock, a slice has about 1,000 pieces, regardless of the speed of the machine.
    let ms = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => (ms += 0.01));
    onTestFinished(() => void vi.restoreAllMocks());
    expect(await turnsOf(tenants.sync('acme'))).toBeGreaterThan(80);
    expect(await turnsOf(tenants.isCurrent('acme'))).toBeGreaterThan(80);
    state.paused = true;
    expect(await turnsOf(tenants.sync('acme'))).toBeGreaterThan(80);
  });

  test('includes all objects of one moment, and no later ones', async () => {
    const { tenants, state } = start();
    state.blocks = many;
    const synced = tenants.sync('acme');
    while (state.gathered === 0) await new Promise(resolve => setImmediate(resolve));
    state.blocks = ['later'];
    await synced;
    expect(tenants.compiled('acme')?.paused.size).toBe(many.length);
    await tenants.sync('acme');
    expect([...(tenants.compiled('acme')?.paused.keys() ?? [])]).toEqual(['uid-later']);
  });

  test('is read again if its routes were invalidated while they were compiled', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    state.blocks = many;
    state.gathered = 0;
    const synced = tenants.sync('acme');
    while (state.gathered === 0) await new Promise(resolve => setImmediate(resolve));
    tenants.forget(['acme']);
    await synced;
    state.calls.length = 0;
    state.blocks = [];
    const again = tenants.sync('acme');
    while (!state.calls.includes('patch')) await new Promise(resolve => setImmediate(resolve));
    tenants.forget(['acme']);
    await again;
    expect(tenants.isSynced('acme')).toBe(false);
  });
});

const object: AnyObject = { metadata: { name: 'globex', namespace: 'acme', uid: 'uid-globex', resourceVersion: '1' } };

test('routes are written with the epoch of the term in which their objects were read', async () => {
  const { tenants, state } = start();
  await tenants.sync('acme');
  state.fences.clear();
  state.blocks = Array.from({ length: 50_000 }, (_, i) => `b${i}`);
  state.gathered = 0;
  const synced = tenants.sync('acme');
  while (state.gathered === 0) await new Promise(resolve => setImmediate(resolve));
  // Another replica may have led in the meantime, and may have written newer routes.
  state.epoch = 3;
  await synced;
  expect([...state.fences]).toEqual([1]);
});

describe('an object whose routes are applied', () => {
  async function write() {
    const { tenants, state } = start();
    state.objects = [object];
    await tenants.sync('acme');
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    state.writing = promise;
    state.blocks = ['b1'];
    state.calls.length = 0;
    const synced = tenants.sync('acme');
    while (!state.calls.includes('applyParts')) await new Promise(done => setImmediate(done));
    return { tenants, state, synced, resolve, reject };
  }

  test('does not wait while other changes are written', async () => {
    const { tenants, state, synced, resolve } = await write();
    state.gathered = 0;
    await tenants.inForce('acme', object);
    expect([tenants.isSynced('acme'), tenants.stored('acme')]).toEqual([true, undefined]);
    resolve();
    await synced;
    expect(state.gathered).toBe(0);
  });

  test('waits if the routes are invalidated in the meantime, or if the write fails', async () => {
    const { tenants, state, synced, resolve, reject } = await write();
    tenants.forget(['acme']);
    expect(tenants.isSynced('acme')).toBe(false);
    const again = tenants.inForce('acme', object);
    reject(new Error('unavailable'));
    await expect(synced).rejects.toThrow('unavailable');
    expect(tenants.isSynced('acme')).toBe(false);
    state.writing = Promise.resolve();
    await again;
    expect(tenants.isSynced('acme')).toBe(true);
    resolve();
  });
});

describe('tenants', () => {
  test('return the subscriptions and blocks whose routes differ from their status', async () => {
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

  test('are not read again after a removal if all other data is known', async () => {
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
    const failing = tenants.remove('acme', 'uid-3', () => Promise.reject(new Error('unavailable')), left);
    await expect(failing).rejects.toThrow('unavailable');
    expect(tenants.isRemoved('uid-3')).toBe(false);
    expect(await read()).toBe(true);
    await tenants.remove('acme', 'uid-4', async () => tenants.forget('all'), left);
    expect(await read()).toBe(true);
  });

  test('only check the activations of new objects', async () => {
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

  test('that are paused while they are compiled are not written', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    state.calls.length = 0;
    state.blocks = Array.from({ length: 50_000 }, (_, i) => `b${i}`);
    state.gathered = 0;
    const synced = tenants.sync('acme');
    while (state.gathered === 0) await new Promise(resolve => setImmediate(resolve));
    state.paused = true;
    await synced;
    expect(state.calls).not.toContain('applyParts');
    expect(state.calls).toContain('closeParts');
    expect(tenants.isSynced('acme')).toBe(false);
  });

  test('that are paused while they are prepared are not compiled', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    state.calls.length = 0;
    state.gathered = 0;
    state.blocks = ['b1'];
    state.onPrepare = () => void (state.paused = true);
    await tenants.sync('acme');
    expect(state.gathered).toBe(1);
    expect(state.calls).toEqual(['enlist', 'readTenant', 'closeParts']);
  });

  test('that are paused still lose their ingress keys, once those in Secrets are known', async () => {
    const { tenants, state } = start();
    const workspace: AnyObject = { metadata: { name: 'acme', uid: 'uid-acme', resourceVersion: '1' } };
    state.objects = [workspace];
    state.stored = { keys: { leaked: '', kept: '' } };
    state.paused = true;
    state.knowsKeys = false;
    await expect(tenants.closedBy('acme', workspace)).rejects.toThrow('what closes of acme');
    expect(state.patches).toEqual([]);
    state.knowsKeys = true;
    state.secretKeys = ['kept', 'new'];
    await tenants.closedBy('acme', workspace);
    expect(state.patches.flatMap(({ ops }) => ops)).toEqual([
      { command: 'HDEL', key: tenantKeys('ten_x').keys, args: ['leaked'] },
    ]);
  });

  test('that cannot be compiled without their Secrets can still be closed', async () => {
    const { tenants, state } = start();
    const deleted: AnyObject = { metadata: { name: 'orders', namespace: 'acme', uid: 'uid-x', resourceVersion: '1' } };
    state.objects = [deleted];
    state.knowsKeys = false;
    state.onPrepare = () => {
      throw new Error('the Secrets cannot be read');
    };
    await expect(tenants.sync('acme')).rejects.toThrow('cannot be read');
    state.calls.length = 0;
    // Syncs fail all the time, but they do not make it necessary to close the routes again.
    await Promise.all([tenants.closedBy('acme', deleted), tenants.closedBy('acme', deleted)]);
    await expect(tenants.sync('acme')).rejects.toThrow('cannot be read');
    await tenants.closedBy('acme', deleted);
    expect(state.calls).toEqual(['enlist', 'readTenant', 'closeParts']);
    expect(tenants.isSynced('acme')).toBe(false);
    state.onPrepare = () => {};
    state.calls.length = 0;
    await tenants.sync('acme');
    expect(state.calls).toContain('readTenant');
    expect(tenants.isSynced('acme')).toBe(true);
  });

  test('whose Secrets cannot be read are still closed, and keep reporting why nothing else is written', async () => {
    const { tenants, state } = start();
    await tenants.sync('acme');
    const routed = state.patches.flatMap(({ ops }) => ops);
    expect(routed).not.toEqual([]);
    const { compiled } = tenants;
    state.stored = compiled('acme')?.routes ?? {};
    tenants.forget('all');
    state.patches.length = 0;
    state.changed.length = 0;
    state.blocks = ['b1'];
    state.more = ['new'];
    state.knowsKeys = false;
    state.onPrepare = () => {
      throw new SecretsUnreadableError('SecretsForbidden', 'the Secrets cannot be read');
    };
    await expect(tenants.sync('acme')).rejects.toThrow('the Secrets cannot be read');
    expect(state.changed).toEqual([['uid-acme-orders', 'uid-b1']]);
    expect(tenants.closureOf('acme', 'uid-acme-orders')).toBe('Blocked');
    expect(tenants.isClosing('acme')).toBe(true);
    expect(JSON.stringify(state.patches)).not.toContain('new');
    // All objects of the tenant retry, but a closing compares all of them.
    state.calls.length = 0;
    state.nowMs += 4_999;
    await expect(tenants.sync('acme')).rejects.toThrow('the Secrets cannot be read');
    expect(state.calls).toEqual([]);
    state.nowMs += 1;
    await expect(tenants.sync('acme')).rejects.toThrow('the Secrets cannot be read');
    expect(state.calls).toEqual(['enlist']);
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
    // This only writes the name, which already exists. It reads everything once and closes open group keys without a
    // record.
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

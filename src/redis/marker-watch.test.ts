import { expect, test, vi } from 'vitest';
import { FORMAT } from './format.ts';
import { watchMarker } from './marker-watch.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const OURS = { uid: 'ours', format: String(FORMAT) };

/** Returns a watch whose node may respond with the marker, and a function to reconnect. */
function watched(cluster: boolean) {
  const listeners: (() => void)[] = [];
  const onUsable = vi.fn<() => void>();
  const state: { marker: Record<string, string> | undefined } = { marker: OURS };
  const readHash = async () => {
    if (state.marker === undefined) throw new Error('timeout');
    return state.marker;
  };
  const onReconnect = (listener: () => void) => void listeners.push(listener);
  const watch = watchMarker({ cluster, readHash, onReconnect }, { instance: '', checkEveryMs: 20, onUsable });
  return { watch, onUsable, state, reconnect: () => listeners.forEach(listener => listener()) };
}

test('after a reconnect, the data of a single Redis is not used before it was checked', async () => {
  const { watch, onUsable, state, reconnect } = watched(false);
  state.marker = undefined;
  reconnect();
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(watch.isUsable()).toBe(false);
  expect(onUsable).not.toHaveBeenCalled();
  state.marker = OURS;
  await vi.waitFor(() => expect(watch.isUsable()).toBe(true), SOON);
  expect(onUsable).toHaveBeenCalledOnce();
  watch.stop();
});

test('reports a Redis that does not respond to several checks in a row, until it responds', async () => {
  const { watch, state } = watched(false);
  expect(watch.silence()).toBeUndefined();
  state.marker = undefined;
  await vi.waitFor(() => expect(watch.silence()?.message).toBe('timeout'), SOON);
  expect(watch.isUsable()).toBe(true);
  state.marker = OURS;
  await vi.waitFor(() => expect(watch.silence()).toBeUndefined(), SOON);
  watch.stop();
});

test('in a Redis Cluster, other nodes are used if the node with the marker does not respond', async () => {
  const { watch, onUsable, state, reconnect } = watched(true);
  state.marker = undefined;
  reconnect();
  expect(watch.isUsable()).toBe(true);
  expect(onUsable).toHaveBeenCalledOnce();
  await new Promise(resolve => setTimeout(resolve, 50));
  expect(watch.isUsable()).toBe(true);
  state.marker = { ...OURS, format: '99' };
  await vi.waitFor(() => expect(watch.isUsable()).toBe(false), SOON);
  expect(watch.refusal()?.message).toContain('99');
  watch.stop();
});

test('returns the version of the ingress keys with the time of the request, and none of data that is refused or lost', async () => {
  const { watch, state } = watched(false);
  const startedMs = performance.now();
  state.marker = { ...OURS, epoch: '3', keys: '3 a' };
  await vi.waitFor(() => expect(watch.keysVersion()?.version).toBe('3 a'), SOON);
  expect(watch.keysVersion()?.requestedMs).toBeGreaterThanOrEqual(startedMs);
  // The version was valid when it was requested.
  state.marker = undefined;
  await vi.waitFor(() => expect(watch.silence()).toBeDefined(), SOON);
  expect(watch.keysVersion()?.requestedMs).toBeLessThan(performance.now());
  state.marker = { ...OURS, epoch: '3', keys: '3 b' };
  await vi.waitFor(() => expect(watch.keysVersion()?.version).toBe('3 b'), SOON);
  state.marker = { ...OURS, epoch: '3', keys: '3 b', format: '99' };
  await vi.waitFor(() => expect(watch.keysVersion()).toBeUndefined(), SOON);
  state.marker = { ...OURS, epoch: '3', keys: '3 b' };
  await vi.waitFor(() => expect(watch.keysVersion()?.version).toBe('3 b'), SOON);
  state.marker = {};
  await vi.waitFor(() => expect(watch.keysVersion()).toBeUndefined(), SOON);
  watch.stop();
});

import { expect, test } from 'vitest';
import { createManualClock } from '../../../../test/support/manual-clock.ts';
import type { Reflector } from '../../../kube/reflector.ts';
import { SECRETS } from '../../../kube/resource.ts';
import { createStore } from '../../../kube/store.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { createRegistry } from '../../../telemetry/metrics.ts';
import { type IngressKeySecret, projectIngressKey } from '../../caches/secret-caches.ts';
import { createControllerMetrics } from '../../engine/controller-metrics.ts';
import { createIngressKeyWatch } from './ingress-key-watch.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const METADATA = { name: 'shop', namespace: 'acme', uid: 'uid-1', resourceVersion: '7' };
const base64 = (text: string) => Buffer.from(text).toString('base64');
const project = (data?: Record<string, string>) => projectIngressKey({ metadata: METADATA, ...(data && { data }) });

test('only keeps the digest of a valid key', () => {
  expect(project({ key: base64('an-ingress-key-of-the-shop') })).toEqual({
    namespace: 'acme',
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

test.each([
  [undefined, 'the Secret does not have a field "key". Add the key to this field'],
  [
    { token: base64('an-ingress-key-of-the-shop') },
    'the Secret does not have a field "key" (it has: token). Add the key to this field',
  ],
  [{ key: base64('abc') }, 'it has 3 bytes; use 20 or more'],
  [{ key: base64('an-ingress-key-of-the-shop\n') }, 'Remove line breaks'],
])(
  '%j does not give access: its digest is not in force, and the message contains the reason without the key',
  (data, words) => {
    const { sha256, unusable } = project(data);
    expect(sha256).toBeUndefined();
    expect(unusable).toEqual({ message: expect.stringContaining(words), metadata: METADATA });
    expect(unusable?.message).not.toContain('an-ingress-key-of-the-shop');
  },
);

test('each Secret that does not give access is reported by a Warning, and others are not', async () => {
  const store = createStore<IngressKeySecret>();
  store.set('acme/shop', project({ key: base64('abc') }));
  store.set('acme/good', project({ key: base64('an-ingress-key-of-the-shop') }));
  const reflector = {
    store,
    resource: SECRETS,
    hasSynced: () => true,
    synced: Promise.resolve(),
    subscribe: () => () => undefined,
  } as unknown as Reflector<IngressKeySecret>;
  const recorded: unknown[] = [];
  const clock = createManualClock();
  const controller = createIngressKeyWatch(
    {
      name: 'ingresskey',
      clock,
      log: createLogger({ level: 'silent' }),
      metrics: createControllerMetrics(createRegistry())('ingresskey'),
      events: { record: ({ metadata }, { type, reason }) => recorded.push([metadata.name, type, reason]) },
    },
    { ingressKeys: reflector },
  );
  const stop = new AbortController();
  const running = controller.run(stop.signal, new AbortController().signal);
  await expect.poll(() => recorded, SOON).toEqual([['shop', 'Warning', 'UnusableIngressKey']]);
  stop.abort();
  await running;
});

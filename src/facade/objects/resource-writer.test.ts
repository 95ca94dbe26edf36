import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { Cached } from './cached.ts';
import type { Caches } from './caches.ts';
import { createResourceWriter } from './resource-writer.ts';

const ACTIVATION = { integration: 'globex', groupKey: 'a' };
const stored = (spec: object) => ({ metadata: { namespace: 'shop', name: 'a', uid: 'u' }, spec }) as never;

test.each([
  ['creates one', undefined, ACTIVATION, 1],
  ['opens a revoked one again', { ...ACTIVATION, revoked: true }, ACTIVATION, 1],
  ['repeats an open one', ACTIVATION, ACTIVATION, 0],
  ['revokes one', ACTIVATION, { ...ACTIVATION, revoked: true }, 0],
  ['creates a revoked one', undefined, { ...ACTIVATION, revoked: true }, 0],
  ['revokes it again', { ...ACTIVATION, revoked: true }, { ...ACTIVATION, revoked: true }, 0],
])('a write that %s is checked against the limit of activations or not', async (_what, before, spec, limited) => {
  let checks = 0;
  const writer = createResourceWriter({
    client: { apply: async () => stored(spec) } as unknown as KubeClient,
    caches: { live: async () => undefined } as unknown as Caches,
    limits: {
      create: async (_kind, _name, _spec, create) => {
        checks += 1;
        return create();
      },
    },
    clock: createManualClock(),
  });
  await writer.apply(
    'Activation',
    { namespace: 'shop', name: 'a' },
    {
      manager: 'sluice-facade',
      before: before && (stored(before) as Cached<'Activation'>),
      spec,
      concern: ['integration', 'groupKey', 'revoked'],
    },
  );
  expect(checks).toBe(limited);
});

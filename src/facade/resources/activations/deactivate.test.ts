import { expect, test } from 'vitest';
import { publicId } from '../../../core/ids/ids.ts';
import { Refusal } from '../../../http/refusal.ts';
import { deactivate } from './deactivate.ts';

const ADA = publicId('Integration', 'shop', 'ada');
const activation = { metadata: { name: 'act', namespace: 'shop', uid: 'u', generation: 2 }, spec: { revoked: true } };

/** Deactivates a group key whose Activation exists until the wait for the controller fails with this problem. */
function start(code: 'changed_meanwhile' | 'not_in_force') {
  let exists = true;
  const facade = {
    clock: { nowMs: () => 0 },
    gates: { isClosed: async () => true },
    caches: {
      find: async () => ({ metadata: { name: 'ada', namespace: 'shop' } }),
      get: () => undefined,
      by: () => [],
      live: async () => (exists ? activation : undefined),
    },
    writer: {
      edit: (attempt: () => Promise<unknown>) => attempt(),
      apply: async () => activation,
      async waitFor() {
        exists = false;
        throw new Refusal(code);
      },
    },
  };
  return deactivate(facade as never, { name: 'shop', publicId: 'ten_1' } as never, ADA, 'red');
}

test('a group key whose Activation is deleted in the meantime is closed', async () => {
  expect(await start('changed_meanwhile')).toBeUndefined();
});

test('a group key is not reported as closed if the wait fails for another reason', async () => {
  await expect(start('not_in_force')).rejects.toMatchObject({ code: 'not_in_force' });
});

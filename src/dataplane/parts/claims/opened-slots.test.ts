import { expect, test } from 'vitest';
import { createKeyRing } from '../../../core/delivery/key-ring.ts';
import { ROTATION_OVERLAP_MS } from '../../../core/delivery/signing-secret.ts';
import { sealSlotEndpoint } from '../../../core/delivery/slot-endpoint.ts';
import { rowText } from '../../../part/gate/subscription-row.ts';
import { type Part, partKeys, slotOf } from '../../../part/keys.ts';
import type { Logger } from '../../../telemetry/log.ts';
import { createOpenSlots } from './opened-slots.ts';

const PART: Part = { tenant: 'ten_a', queue: 'orders', gen: 'g', number: 0 };
const OWNER = { subscription: 'sub_a', inc: 'inc' };
const NOW_MS = 1_800_000_000_000;
const files = ['root.key', 'root.key.2'].map((name, i) => ({ name, secret: new Uint8Array(32).fill(i + 1) }));

/** A slot whose secret was rotated to the newer of two root keys. The part knows the keys in `known`. */
function start(known: readonly number[]) {
  const [older, newer] = createKeyRing(files).all();
  if (older === undefined || newer === undefined) throw new Error('two keys');
  const config = { url: 'https://a.example', timeoutMs: 1, retryMs: [], headers: {}, salt: 'a-salt' };
  const signing = { secretVersion: 2, rotatedAtMs: NOW_MS, key: newer.id, previousKey: older.id };
  const endpoint = sealSlotEndpoint(newer.sealKeys, OWNER, { ...config, ...signing });
  const row = rowText({
    route: 'open',
    send: 'open',
    unordered: false,
    cap: 1,
    since: '1a0c4fe8c00001f',
    cfgv: 'abc',
    integration: 'int_a',
  });
  const filesOf = (which: readonly number[]) => which.map(i => files[i] as (typeof files)[number]);
  const keys = createKeyRing(filesOf(known));
  const errors: object[] = [];
  const clock = { ms: NOW_MS };
  const openSlots = createOpenSlots(
    {
      redis: { call: async (_command, key) => [key === partKeys(PART).subs ? row : endpoint] },
      keys,
      version: '0',
      wallMs: () => clock.ms,
      log: { error: (fields: object) => errors.push(fields), debug: () => {} } as unknown as Logger,
    },
    PART,
  );
  const open = async (slot = slotOf(OWNER.subscription, OWNER.inc)) => (await openSlots([slot]))[0]?.subscription;
  return { clock, errors, open, learn: (which: readonly number[]) => keys.replace(filesOf(which)) };
}

test('a slot is not opened without the root key of its previous secret, and is opened when the key is restored', async () => {
  const { errors, open, learn } = start([1]);
  expect(await open()).toBeUndefined();
  expect(errors).toHaveLength(1);
  learn([0, 1]);
  expect((await open())?.validUntilMs).toBe(NOW_MS + ROTATION_OVERLAP_MS);
  expect(errors).toHaveLength(1);
});

test('a slot remains open until the root keys change', async () => {
  const { open, learn } = start([0, 1]);
  const kept = await open();
  expect(kept).toBeDefined();
  expect(await open()).toBe(kept);
  learn([1]);
  expect(await open()).toBeUndefined();
});

test('a slot is opened again when the overlap of its secrets ends, and is then signed with the newest one only', async () => {
  const { clock, open } = start([0, 1]);
  const both = await open();
  clock.ms = NOW_MS + ROTATION_OVERLAP_MS - 1;
  expect(await open()).toBe(both);
  clock.ms++;
  expect((await open())?.validUntilMs).toBe(Number.POSITIVE_INFINITY);
});

test('a slot is not opened with the endpoint of another subscription', async () => {
  const { errors, open } = start([0, 1]);
  expect(await open(slotOf('sub_b', OWNER.inc))).toBeUndefined();
  expect(await open(slotOf(OWNER.subscription, 'later'))).toBeUndefined();
  expect(errors).toHaveLength(2);
});

test('slots that cannot be opened, and are tried twice a second, only write a few lines each minute', async () => {
  const { errors, open } = start([1]);
  for (let n = 0; n < 100; n++) expect(await open()).toBeUndefined();
  expect(errors).toHaveLength(10);
});

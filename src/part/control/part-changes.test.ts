import { expect, test } from 'vitest';
import type { TenantRoutes } from '../../core/routing/routes.ts';
import { NO_REF } from '../lanes/ref.ts';
import { planPart } from './part-changes.ts';
import { type WantedPart, wantedParts } from './wanted-part.ts';

const KEYS = 1_000;

test('plans the activations of a part in pieces, because there may be 100,000 of them', () => {
  const row = { route: 'open', send: 'open', unordered: false, cap: 1, since: NO_REF, cfgv: '1', integration: 'int_a' };
  const wanted = {
    part: { tenant: 'ten_a', queue: 'orders', gen: 'g', number: 0 },
    meta: {},
    slots: new Map([['slot0000', { integration: 'int_a', row, endpoint: '', onUnblock: undefined }]]),
  } as unknown as WantedPart;
  const open = Array.from({ length: KEYS }, (_, n) => ({ groupKey: `key-${n}`, sinceMs: 1 }));
  const stored = {
    meta: { gen: 'g' },
    rows: new Map<string, string>(),
    endpoints: new Map<string, string>(),
    isMarked: true,
    activations: new Set(Array.from({ length: KEYS }, (_, n) => `slot0000key-${n + KEYS / 2}`)),
    damaged: [],
    unparking: [],
  };
  const steps = planPart(stored, wanted, () => new Map([['int_a', open]]), new Set());
  let pieces = 0;
  for (let step = steps.next(); ; step = steps.next()) {
    if (!step.done) {
      pieces++;
      continue;
    }
    const kinds = Map.groupBy(step.value.activations, ({ kind }) => kind);
    expect([kinds.get('on')?.length, kinds.get('off')?.length]).toEqual([KEYS / 2, KEYS / 2]);
    break;
  }
  expect(pieces).toBe(2 * KEYS);
});

test('plans the rows of a part in pieces, because there may be 10,000 of them', () => {
  const route = { inc: 'inc', queue: 'orders', gen: 'g', route: 'open', send: 'open', cap: 1, endpoint: '' };
  const subscriptions = Object.fromEntries(Array.from({ length: KEYS }, (_, n) => [`sub_${n}`, route]));
  const routes = {
    tenant: 'ten_a',
    queues: { orders: { gen: 'g' } },
    integrations: { int_a: { state: 'active', subscriptions } },
  } as unknown as TenantRoutes;
  const steps = wantedParts(routes);
  let pieces = 0;
  let step = steps.next();
  for (; !step.done; step = steps.next()) pieces++;
  expect(step.value.get('orders')?.slots.size).toBe(KEYS);
  expect(pieces).toBe(KEYS);
});

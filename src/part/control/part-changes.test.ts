import { expect, test } from 'vitest';
import { NO_REF } from '../lanes/ref.ts';
import { planPart } from './part-changes.ts';
import type { WantedPart } from './wanted-part.ts';

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

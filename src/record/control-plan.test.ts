import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routing/routes.ts';
import { queueKeys, tenantKeys } from '../redis/keys.ts';
import { type PatchOp, planRoutes, type RoutesPlan, type StoredRoutes } from './control-plan.ts';
import { keepUnowned } from './unowned-routes.ts';

const queueRoute = fc.record<QueueRoute>({
  gen: fc.constantFrom('g1', 'g2'),
  state: fc.constantFrom('open', 'closing'),
  retentionMs: fc.constantFrom(3_600_000, 7_200_000),
  maxBytes: fc.constant(1_000),
  source: fc.constant('/s'),
  eventTypes: fc.constantFrom([], ['a'], ['a', 'b']),
  contextHeaders: fc.constant({ eventType: [], groupKey: [], eventId: [], forward: [] }),
});
const subscriptionRoute: fc.Arbitrary<SubscriptionRoute> = fc.record(
  {
    inc: fc.constantFrom('i1', 'i2'),
    queue: fc.constantFrom('q1', 'constructor'),
    gen: fc.constantFrom('g1', 'g2'),
    route: fc.constantFrom('open' as const, 'paused' as const),
    send: fc.constantFrom('open' as const, 'held' as const),
    sinceMs: fc.constantFrom(1, 2),
    unordered: fc.boolean(),
    cap: fc.constantFrom(1, 64),
    endpoint: fc.constantFrom('', 'sealed'),
    onUnblock: fc.constantFrom('continue' as const, 'skip' as const),
    maxPerSecond: fc.constantFrom(5, 6),
    enabledMs: fc.constantFrom(1, 2),
  },
  { requiredKeys: ['inc', 'queue', 'gen', 'route', 'send', 'sinceMs', 'unordered', 'cap', 'endpoint'] },
);
const tenantRoutes = fc.record<TenantRoutes, 'tenant' | 'payer' | 'plan' | 'keys' | 'queues' | 'integrations'>(
  {
    tenant: fc.constant('ten_t'),
    payer: fc.constantFrom('acc_1', ''),
    plan: fc.constantFrom('Free', 'Metered', ''),
    eventsPerSecond: fc.constantFrom(0, 100),
    storedBytes: fc.constantFrom(0, 100),
    keys: fc.dictionary(fc.constantFrom('aa', 'bb'), fc.constantFrom('', '5')),
    queues: fc.dictionary(fc.constantFrom('q1', 'constructor'), queueRoute),
    integrations: fc.dictionary(
      fc.constantFrom('int_1', 'int_2'),
      fc.record({
        state: fc.constantFrom('pending' as const, 'active' as const, 'closed' as const),
        sinceMs: fc.constantFrom(1, 2),
        subscriptions: fc.dictionary(fc.constantFrom('sub_1', 'sub_2'), subscriptionRoute),
      }),
    ),
  },
  { requiredKeys: ['tenant', 'payer', 'plan', 'keys', 'queues', 'integrations'] },
);
const nothing: StoredRoutes = {
  ready: new Set(),
  routes: { tenant: 'ten_t', payer: '', plan: '', keys: {}, queues: {}, integrations: {} },
};

/** The content of Redis after the patches: hashes by key. */
type Redis = Map<string, Map<string, string>>;

function write(redis: Redis, { command, key, args }: PatchOp): void {
  const hash = redis.get(key) ?? new Map<string, string>();
  redis.set(key, hash);
  const text = args.map(String);
  if (command === 'DEL') redis.delete(key);
  else if (command === 'HDEL') for (const field of text) hash.delete(field);
  else if (command === 'HSETNX') {
    if (!hash.has(text[0] as string)) hash.set(text[0] as string, text[1] as string);
  } else if (command === 'HSET') {
    expect(text.length % 2).toBe(0);
    for (let i = 0; i < text.length; i += 2) hash.set(text[i] as string, text[i + 1] as string);
  } else throw new Error(`a plan does not ${command}`);
  if (hash.size === 0) redis.delete(key);
}

function apply(redis: Redis, plan: RoutesPlan): void {
  for (const { ops } of [...plan.patches, ...plan.ready]) for (const op of ops) write(redis, op);
}

const plainOf = (redis: Redis) => Object.fromEntries([...redis].map(([key, hash]) => [key, Object.fromEntries(hash)]));

/** Returns the controller's state after writing a plan. */
function after(have: StoredRoutes, want: TenantRoutes, plan: RoutesPlan): StoredRoutes {
  const ready = new Set(have.ready);
  for (const { meta } of plan.ready) ready.add(meta);
  return { ready, routes: keepUnowned(have.routes, want) };
}

describe('planRoutes', () => {
  test('does not require more writes after a change from any state to any other', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const one = planRoutes(nothing, first);
        const stored = after(nothing, first, one);
        expect(planRoutes(stored, first)).toEqual({ patches: [], ready: [] });
        const two = planRoutes(stored, second);
        expect(planRoutes(after(stored, second, two), second)).toEqual({ patches: [], ready: [] });
      }),
    );
  });

  test('the result in Redis does not depend on the order of changes, except for data that is kept', () => {
    const kept = /^(since|fence)$/;
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        // The first plan contains all of the second plan, so there is no data without an owner.
        const both = keepUnowned(second, first);
        const want = { ...second, ...keepUnowned(both, second) };
        const direct: Redis = new Map();
        apply(direct, planRoutes(nothing, want));
        const detour: Redis = new Map();
        const plan = planRoutes(nothing, both);
        apply(detour, plan);
        apply(detour, planRoutes(after(nothing, both, plan), want));
        const plain = (redis: Redis) => {
          for (const hash of redis.values()) {
            // An empty payer is the same as a missing payer.
            for (const [field, value] of hash) if (kept.test(field) || value === '') hash.delete(field);
          }
          return plainOf(redis);
        };
        expect(plain(detour)).toEqual(plain(direct));
      }),
    );
  });

  test('is the same for identical and for equal objects', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, fc.array(fc.boolean(), { minLength: 6 }), (first, second, changes) => {
        const stored = after(nothing, first, planRoutes(nothing, first));
        // A mix of parts from the first and the second plan.
        const mixed = <T>(a: Readonly<Record<string, T>>, b: Readonly<Record<string, T>>, from: number) =>
          Object.fromEntries(
            [...new Set([...Object.keys(a), ...Object.keys(b)])].flatMap((name, i) => {
              const chosen = changes[from + i] === true ? b : a;
              return Object.hasOwn(chosen, name) ? [[name, chosen[name] as T]] : [];
            }),
          );
        const integrations = mixed(first.integrations, second.integrations, 0);
        const one = integrations.int_1;
        if (one !== undefined && second.integrations.int_1 !== undefined) {
          const before = first.integrations.int_1?.subscriptions ?? {};
          const subscriptions = mixed(before, second.integrations.int_1.subscriptions, 2);
          integrations.int_1 = { ...one, subscriptions };
        }
        const want: TenantRoutes = { ...second, queues: mixed(first.queues, second.queues, 4), integrations };
        // The operations of the tenant's slot have no specific order because a single script runs all of them.
        const plan = (have: StoredRoutes, wanted: TenantRoutes) => {
          const { patches, ...rest } = planRoutes(have, wanted);
          const { meta } = tenantKeys('ten_t');
          const sorted = patches.map(patch =>
            patch.meta === meta ? { meta, ops: patch.ops.toSorted((a, b) => (a.key < b.key ? -1 : 1)) } : patch,
          );
          return { patches: sorted, ...rest };
        };
        expect(plan(stored, want)).toEqual(plan(stored, structuredClone(want)));
        const kept = keepUnowned(stored.routes, want);
        expect(kept).toEqual(keepUnowned(structuredClone(stored.routes), want));
      }),
      { numRuns: 1_000 },
    );
  });

  test('only writes to hashes of the record', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const one = planRoutes(nothing, first);
        const two = planRoutes(after(nothing, first, one), second);
        for (const { ops } of [...two.patches, ...two.ready]) {
          for (const { key } of ops) {
            expect(key).toMatch(/^\{(q:[^}]*\}:meta|t:[^}]*\}:(meta|keys|index|subs:.*)|i:[^}]*\}:(meta|s:[^:.]*))$/);
          }
        }
      }),
    );
  });

  test('only marks a recreated stream as ready, and keeps its fence', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const stored = after(nothing, first, planRoutes(nothing, first));
        const { patches, ready } = planRoutes(stored, second);
        for (const [name, { gen }] of Object.entries(stored.routes.queues)) {
          const { meta } = queueKeys('ten_t', name);
          const ops = patches.filter(patch => patch.meta === meta).flatMap(patch => patch.ops);
          const made = Object.hasOwn(second.queues, name) && second.queues[name]?.gen !== gen;
          const dropped = ops.filter(({ command }) => command === 'HDEL').flatMap(({ args }) => args);
          expect(dropped).toEqual(made ? ['ready'] : []);
          expect(ops.every(({ command }) => command === 'HDEL' || command === 'HSET')).toBe(true);
          expect(ready.some(patch => patch.meta === meta)).toBe(made);
        }
      }),
    );
  });

  test('adds new names first, and writes the tenant last', () => {
    fc.assert(
      fc.property(tenantRoutes, want => {
        const plan = planRoutes(nothing, want);
        const { meta, index } = tenantKeys('ten_t');
        expect(plan.ready.at(-1)?.meta).toBe(meta);
        const names = plan.patches.flatMap(({ ops }, at) => (ops.some(({ key }) => key === index) ? [at] : []));
        expect(names).toEqual(Object.keys(want.queues).length + Object.keys(want.integrations).length > 0 ? [0] : []);
        if (names.length > 0) expect(plan.patches[0]?.ops.every(({ key }) => key === index)).toBe(true);
        const at = plan.patches.findIndex((patch, i) => patch.meta === meta && !names.includes(i));
        if (at >= 0) expect(at).toBe(plan.patches.length - 1);
      }),
    );
  });
});

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routes.ts';
import { keepUnowned, type PatchOp, planRoutes, type RoutesPlan, type StoredRoutes } from './control-plan.ts';
import { queueKeys, tenantKeys } from './keys.ts';

const queueRoute = fc.record<QueueRoute>({
  gen: fc.constantFrom('g1', 'g2'),
  state: fc.constantFrom('open', 'closing'),
  retentionMs: fc.constantFrom(3_600_000, 7_200_000),
  maxBytes: fc.constant(1_000),
  source: fc.constant('/s'),
  eventTypes: fc.constantFrom([], ['a'], ['a', 'b']),
  contextHeaders: fc.constant({ eventType: [], groupKey: [], eventId: [], forward: [] }),
});
const subscriptionRoute = fc.record<SubscriptionRoute>({
  inc: fc.constantFrom('i1', 'i2'),
  queue: fc.constantFrom('q1', 'constructor'),
  gen: fc.constantFrom('g1', 'g2'),
  route: fc.constantFrom('open', 'paused'),
  send: fc.constantFrom('open', 'held'),
  sinceMs: fc.constantFrom(1, 2),
  unordered: fc.boolean(),
  cap: fc.constantFrom(1, 64),
  endpoint: fc.constantFrom('', 'sealed'),
});
const tenantRoutes = fc.record<TenantRoutes>({
  tenant: fc.constant('ten_t'),
  payer: fc.constantFrom('acc_1', ''),
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
});
const nothing: StoredRoutes = {
  ready: new Set(),
  routes: { tenant: 'ten_t', payer: '', keys: {}, queues: {}, integrations: {} },
};

/** Redis as the patches leave it: hashes and sets by key, without what a rejected patch would do. */
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

/** What the controller holds in memory after it wrote a plan. */
function after(have: StoredRoutes, want: TenantRoutes, plan: RoutesPlan): StoredRoutes {
  const ready = new Set(have.ready);
  for (const { meta } of plan.ready) ready.add(meta);
  return { ready, routes: keepUnowned(have.routes, want) };
}

describe('planRoutes', () => {
  test('from anything to anything: what stands then needs nothing more', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const one = planRoutes(nothing, first);
        const stored = after(nothing, first, one);
        expect(planRoutes(stored, first)).toEqual({ patches: [], ready: [], opened: [], queuesTouched: [] });
        const two = planRoutes(stored, second);
        expect(planRoutes(after(stored, second, two), second)).toMatchObject({ patches: [], ready: [], opened: [] });
      }),
    );
  });

  test('what Redis holds does not depend on the way there (but for what is kept: progress, since, what nobody owns)', () => {
    const kept = /^(since|fence)$/;
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        // Everything that the second has, the first has too: nothing is left that nobody owns.
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
            // No payer is the same as none said.
            for (const [field, value] of hash) if (kept.test(field) || value === '') hash.delete(field);
          }
          return plainOf(redis);
        };
        expect(plain(detour)).toEqual(plain(direct));
      }),
    );
  });

  test('never touches what lies in a queue or an inbox', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const one = planRoutes(nothing, first);
        const two = planRoutes(after(nothing, first, one), second);
        for (const { ops } of [...two.patches, ...two.ready]) {
          for (const { key } of ops)
            expect(key).toMatch(/^\{[tqi]:[^}]*\}:(meta|behind|wake|keys|index|subs:.*|s:[^:.]*)$/);
        }
      }),
    );
  });

  test('only a stream that was made again loses its position, and keeps fence and epoch', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const stored = after(nothing, first, planRoutes(nothing, first));
        const { patches, ready } = planRoutes(stored, second);
        for (const [name, { gen }] of Object.entries(stored.routes.queues)) {
          const { meta, behind } = queueKeys('ten_t', name);
          const ops = patches.filter(patch => patch.meta === meta).flatMap(patch => patch.ops);
          const made = Object.hasOwn(second.queues, name) && second.queues[name]?.gen !== gen;
          const dropped = ops.filter(({ command }) => command === 'HDEL').flatMap(({ args }) => args);
          expect(dropped.includes('cur')).toBe(made);
          expect(dropped).not.toContain('epoch');
          expect(dropped).not.toContain('fence');
          expect(ops.some(({ command, key }) => command === 'DEL' && key === behind)).toBe(made);
          // Until all is written it takes no events.
          expect(ready.some(patch => patch.meta === meta)).toBe(made);
        }
      }),
    );
  });

  test('the tenant is written last, and is ready last', () => {
    fc.assert(
      fc.property(tenantRoutes, want => {
        const plan = planRoutes(nothing, want);
        const { meta } = tenantKeys('ten_t');
        expect(plan.ready.at(-1)?.meta).toBe(meta);
        const at = plan.patches.findIndex(patch => patch.meta === meta);
        if (at >= 0) expect(at).toBe(plan.patches.length - 1);
      }),
    );
  });

  test('who opens is woken, and so is who closes: nothing stays behind that nobody would take', () => {
    const sub: SubscriptionRoute = {
      inc: 'i1',
      queue: 'q1',
      gen: 'g1',
      route: 'paused',
      send: 'held',
      sinceMs: 1,
      unordered: false,
      cap: 1,
      endpoint: '',
    };
    const routes = (
      route: Partial<SubscriptionRoute> | null,
      state: 'active' | 'pending' = 'active',
    ): TenantRoutes => ({
      ...nothing.routes,
      integrations: {
        int_1: { state, sinceMs: 1, subscriptions: route === null ? {} : { sub_1: { ...sub, ...route } } },
      },
    });
    const opened = (from: TenantRoutes, to: TenantRoutes) =>
      planRoutes(after(nothing, from, planRoutes(nothing, from)), to).opened.length;
    expect(opened(routes({}), routes({ route: 'open' }))).toBe(1);
    expect(opened(routes({}), routes({ send: 'open' }))).toBe(1);
    expect(opened(routes({ route: 'open' }), routes({ route: 'open' }))).toBe(0);
    expect(opened(routes({ route: 'open' }), routes({}))).toBe(0);
    expect(opened(routes({ route: 'open' }, 'pending'), routes({ route: 'open' }))).toBe(1);
    expect(opened(routes({}), routes(null))).toBe(1);
    expect(opened(routes({ send: 'open' }), routes({ send: 'open', cap: 2 }))).toBe(1);
  });
});

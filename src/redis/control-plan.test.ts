import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { QueueRoute, SubscriptionRoute, TenantRoutes } from '../core/routing/routes.ts';
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
const NOW_MS = 9;
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
const tenantRoutes = fc.record<TenantRoutes>({
  tenant: fc.constant('ten_t'),
  payer: fc.constantFrom('acc_1', ''),
  plan: fc.constantFrom('Free', 'Metered', ''),
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
  routes: { tenant: 'ten_t', payer: '', plan: '', keys: {}, queues: {}, integrations: {} },
};

/** A subscription that is paused, and its queue. */
const paused: SubscriptionRoute = {
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
const queues: TenantRoutes['queues'] = {
  q1: {
    gen: 'g1',
    state: 'open',
    retentionMs: 3_600_000,
    maxBytes: 1_000,
    source: '/s',
    eventTypes: [],
    contextHeaders: { eventType: [], groupKey: [], eventId: [], forward: [] },
  },
};

/** Redis as the patches leave it: hashes and sets by key, without what a rejected patch would do. */
type Redis = Map<string, Map<string, string>>;

function write(redis: Redis, { command, key, args }: PatchOp): void {
  // What lies there is not modelled here.
  if (command === 'PEXPIRE') return;
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
        const one = planRoutes(nothing, first, NOW_MS);
        const stored = after(nothing, first, one);
        expect(planRoutes(stored, first, NOW_MS)).toEqual({ patches: [], ready: [], opened: [], queuesTouched: [] });
        const two = planRoutes(stored, second, NOW_MS);
        expect(planRoutes(after(stored, second, two), second, NOW_MS)).toMatchObject({
          patches: [],
          ready: [],
          opened: [],
        });
      }),
    );
  });

  test('what Redis holds does not depend on the way there (but for what is kept: progress, since, what nobody owns)', () => {
    const kept = /^(since|skipTo|fence)$/;
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        // Everything that the second has, the first has too: nothing is left that nobody owns.
        const both = keepUnowned(second, first);
        const want = { ...second, ...keepUnowned(both, second) };
        const direct: Redis = new Map();
        apply(direct, planRoutes(nothing, want, NOW_MS));
        const detour: Redis = new Map();
        const plan = planRoutes(nothing, both, NOW_MS);
        apply(detour, plan);
        apply(detour, planRoutes(after(nothing, both, plan), want, NOW_MS));
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

  test('is the same whether what did not change is the very same object or only equal', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, fc.array(fc.boolean(), { minLength: 6 }), (first, second, changes) => {
        const stored = after(nothing, first, planRoutes(nothing, first, NOW_MS));
        // Some parts of the first, some of the second.
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
        // Of the tenant's slot the order says nothing: all its operations are of one script.
        const plan = (have: StoredRoutes, wanted: TenantRoutes) => {
          const { patches, ...rest } = planRoutes(have, wanted, NOW_MS);
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

  test('never touches what lies in a queue or an inbox', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const one = planRoutes(nothing, first, NOW_MS);
        const two = planRoutes(after(nothing, first, one), second, NOW_MS);
        for (const { ops } of [...two.patches, ...two.ready]) {
          // What a successor's predecessor left ends by itself.
          for (const { key } of ops.filter(({ command }) => command !== 'PEXPIRE'))
            expect(key).toMatch(/^\{[tqi]:[^}]*\}:(meta|behind|wake|expired|keys|index|subs:.*|s:[^:.]*)$/);
        }
      }),
    );
  });

  test('only a stream that was made again loses its position, and keeps fence and epoch', () => {
    fc.assert(
      fc.property(tenantRoutes, tenantRoutes, (first, second) => {
        const stored = after(nothing, first, planRoutes(nothing, first, NOW_MS));
        const { patches, ready } = planRoutes(stored, second, NOW_MS);
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

  test('what is new is named first, the tenant is written last, and is ready last', () => {
    fc.assert(
      fc.property(tenantRoutes, want => {
        const plan = planRoutes(nothing, want, NOW_MS);
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

  test('who opens is woken, and so is who closes: nothing stays behind that nobody would take', () => {
    const routes = (
      route: Partial<SubscriptionRoute> | null,
      state: 'active' | 'pending' = 'active',
    ): TenantRoutes => ({
      ...nothing.routes,
      queues,
      integrations: {
        int_1: { state, sinceMs: 1, subscriptions: route === null ? {} : { sub_1: { ...paused, ...route } } },
      },
    });
    const opened = (from: TenantRoutes, to: TenantRoutes) =>
      planRoutes(after(nothing, from, planRoutes(nothing, from, NOW_MS)), to, NOW_MS).opened.length;
    expect(opened(routes({}), routes({ route: 'open' }))).toBe(1);
    expect(opened(routes({}), routes({ send: 'open' }))).toBe(1);
    expect(opened(routes({ route: 'open' }), routes({ route: 'open' }))).toBe(0);
    expect(opened(routes({ route: 'open' }), routes({}))).toBe(0);
    expect(opened(routes({ route: 'open' }, 'pending'), routes({ route: 'open' }))).toBe(1);
    expect(opened(routes({}), routes(null))).toBe(1);
    expect(opened(routes({ send: 'open' }), routes({ send: 'open', cap: 2 }))).toBe(1);
  });

  test('after the last Block, a subscription goes on from now if all that covered it said so, also while it stays suspended', () => {
    const routes = (route: Partial<SubscriptionRoute> | null): TenantRoutes => ({
      ...nothing.routes,
      queues,
      integrations: {
        int_1: {
          state: 'active',
          sinceMs: 1,
          subscriptions: route === null ? {} : { sub_1: { ...paused, ...route } },
        },
      },
    });
    /** The patch of the subscription as `field=value` of what it sets, in order. */
    const sets = (from: Partial<SubscriptionRoute> | null, to: Partial<SubscriptionRoute> | null): string[] => {
      const before = planRoutes(nothing, routes(from), NOW_MS);
      const { patches } = planRoutes(after(nothing, routes(from), before), routes(to), NOW_MS);
      return patches
        .flatMap(({ ops }) => ops)
        .filter(({ key, command }) => key.endsWith(':s:sub_1') && command === 'HSET')
        .flatMap(({ args }) => args.flatMap((arg, i) => (i % 2 === 0 ? [`${arg}=${args[i + 1]}`] : [])))
        .filter(each => !each.startsWith('cfgv'));
    };
    const open = { route: 'open', send: 'open' } as const;
    // Before everything else: a crash in between repeats it.
    expect(sets({ onUnblock: 'skip' }, open)).toEqual([`skipTo=${NOW_MS}`, 'route=open', 'send=open']);
    expect(sets({ onUnblock: 'skip' }, {})).toEqual([`skipTo=${NOW_MS}`]);
    expect(sets({ onUnblock: 'continue' }, open)).toEqual(['route=open', 'send=open']);
    expect(sets({ onUnblock: 'skip' }, { onUnblock: 'continue' })).toEqual(['onUnblock=continue']);
    expect(sets({ onUnblock: 'continue' }, { onUnblock: 'skip' })).toEqual(['onUnblock=skip']);
    expect(sets({}, open)).toEqual(['route=open', 'send=open']);
    expect(sets({ onUnblock: 'skip' }, null)).toEqual(['route=closed']);
    // Made anew: the inbox of another subscription, which has no backlog.
    expect(sets({ onUnblock: 'skip' }, { ...open, inc: 'i2' }).filter(each => each.startsWith('skipTo'))).toEqual([]);
  });
});

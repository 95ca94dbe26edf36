import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Endpoint } from '../../api/endpoint.ts';
import type { SubscriptionSpec } from '../../api/kinds/subscription.ts';
import { publicId } from '../ids/ids.ts';
import { compileRoutes } from './compile-routes.ts';
import { createRoutesMade } from './routes-made.ts';
import type { StreamSnapshot, SubscriptionSnapshot, TenantSnapshot } from './snapshot.ts';
import {
  type Given,
  NOW_MS,
  options,
  readable,
  type SubscriptionGiven,
  snapshotOf,
  TENANT,
  type Then,
} from './testing/tenants.ts';

const FOLDER = new URL('../../../test/golden/routes/', import.meta.url);

describe('golden files: one routing rule each', () => {
  const files = readdirSync(FOLDER).filter(file => file.endsWith('.yaml'));
  test('exist', () => expect(files.length).toBeGreaterThan(20));
  test.each(files)('%s', file => {
    const golden = parse(readFileSync(new URL(file, FOLDER), 'utf8')) as { rule: string; given: Given; then: Then };
    expect(Object.keys(golden)).toEqual(['rule', 'given', 'then']);
    const is = readable(golden.given);
    expect(is).toEqual({ payer: 'main', plan: is.plan, blocks: is.blocks, ...golden.then });
  });
});

const subscriptionOf = (world: Given, name: string) => (world.subscriptions ?? {})[name] as SubscriptionGiven;

describe('any tenant', () => {
  const streams = fc.constantFrom('orders', 'refunds', 'constructor');
  const packages = fc.constantFrom('basic', 'money');
  const integrations = fc.constantFrom('shop', 'bank');
  const given = fc.record<Given>({
    streams: fc.dictionary(streams, fc.record({ public: fc.boolean(), deleting: fc.boolean() })),
    packages: fc.dictionary(packages, fc.record({ streams: fc.array(streams) })),
    integrations: fc.dictionary(
      integrations,
      fc.oneof(
        fc.constant({ workspace: 'partner' }),
        fc.constant({}),
        fc.constant({ workspace: 'partner', revoked: true as const }),
      ),
    ),
    blocks: fc.array(
      fc.oneof(
        fc.tuple(integrations, streams).map(([int, stream]) => `${int} CatalogStream ${stream}`),
        fc.tuple(integrations, packages).map(([int, pkg]) => `${int} Package ${pkg}`),
      ),
    ),
    subscriptions: fc.dictionary(
      fc.constantFrom('s1', 's2', 's3', 's4'),
      fc.record({ integration: integrations, stream: streams, createdMs: fc.nat(3) }),
    ),
  });

  test('a subscription is paused if and only if a block of its stream, or of a package with the stream, applies to it', () => {
    fc.assert(
      fc.property(given, world => {
        const { routes } = readable(world);
        for (const [name, route] of Object.entries(routes)) {
          const { integration, stream } = subscriptionOf(world, name);
          const covered = (world.blocks ?? []).some(block => {
            const [int, kind, target] = block.split(' ') as [string, string, string];
            const inside =
              Object.hasOwn(world.packages ?? {}, target) && world.packages?.[target]?.streams.includes(stream);
            return int === integration && (kind === 'Package' ? inside === true : target === stream);
          });
          expect(route).toContain(covered ? 'route paused, send held' : 'route open, send open');
        }
      }),
    );
  });

  test('is compiled as if there were no earlier results, and reuses unchanged objects', () => {
    /** This behaves like the caches: as long as its content does not change, an object remains the same object. */
    const specs = new Map<string, object>();
    const cached = <T extends { readonly uid: string; readonly spec: object }>(of: string, each: T): T => {
      const key = `${of} ${each.uid} ${JSON.stringify(each.spec)}`;
      if (!specs.has(key)) specs.set(key, each.spec);
      return { ...each, spec: specs.get(key) as T['spec'] };
    };
    const pairs = fc.tuple(integrations, streams, fc.constantFrom('', ' SkipToNow'));
    const blocks = fc.array(pairs.map(([int, stream, how]) => `${int} CatalogStream ${stream}${how}`));
    fc.assert(
      fc.property(given, fc.array(fc.tuple(blocks, fc.nat(2)), { minLength: 2, maxLength: 5 }), (world, history) => {
        const made = createRoutesMade();
        for (const [changed, ms] of history) {
          const plain = snapshotOf({ ...world, blocks: changed });
          const snapshot: TenantSnapshot = {
            ...plain,
            streams: plain.streams.map(each => cached('stream', each)),
            integrations: plain.integrations.map(each => cached('integration', { ...each, acceptedMs: 1 })),
            subscriptions: plain.subscriptions.map(each =>
              cached('subscription', { ...each, signed: { version: ms } }),
            ),
          };
          const now = { ...options, nowMs: NOW_MS + ms };
          const one = compileRoutes(snapshot, { ...now, made });
          expect(one).toEqual(compileRoutes(snapshot, now));
          const again = compileRoutes(snapshot, { ...now, nowMs: now.nowMs + (ms === 0 ? 0 : 1), made });
          for (const [name, queue] of Object.entries(again.routes.queues)) expect(queue).toBe(one.routes.queues[name]);
          for (const [id, route] of Object.entries(again.routes.integrations)) {
            // The time of a secret that has never signed is replaced with the current time.
            if (ms > 0) expect(route).toBe(one.routes.integrations[id]);
          }
        }
      }),
    );
  });

  test('has at most one route for an integration and a stream, regardless of the order of objects', () => {
    fc.assert(
      fc.property(given, world => {
        const one = readable(world);
        const pairs = Object.values(one.routes).map(route => route.split(',')[0]);
        expect(new Set(pairs).size).toBe(pairs.length);
        for (const name of Object.keys(one.routes)) {
          const { integration } = subscriptionOf(world, name);
          expect(one.integrations[integration]).toBe('active');
        }
        const backward = <T>(objects: Record<string, T> | undefined) =>
          Object.fromEntries(Object.entries(objects ?? {}).toReversed());
        const other = readable({
          ...world,
          streams: backward(world.streams),
          packages: backward(world.packages),
          integrations: backward(world.integrations),
          blocks: world.blocks?.toReversed() ?? [],
          subscriptions: backward(world.subscriptions),
        });
        expect(other).toEqual(one);
      }),
    );
  });
});

describe('the health of the endpoint', () => {
  const DISABLED_MS = 700;
  const routeOf = (endpoint: Partial<Endpoint>, more: Partial<SubscriptionSnapshot> = {}, account = {}) => {
    const plain = snapshotOf({
      streams: { orders: {} },
      integrations: { shop: { workspace: 'partner' } },
      subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders' } },
      ...account,
    });
    const [subscription] = plain.subscriptions as [SubscriptionSnapshot];
    const spec = { ...subscription.spec, endpoint: { url: 'https://partner.example/hook', ...endpoint } };
    const snapshot = { ...plain, subscriptions: [{ ...subscription, ...more, spec: { ...spec, ...more.spec } }] };
    const { routes, verdicts } = compileRoutes(snapshot, options);
    const [route] = Object.values(routes.integrations).flatMap(each => Object.values(each.subscriptions));
    return { live: [...verdicts.values()][0]?.live, route };
  };
  const at = (ms: number) => new Date(ms).toISOString();

  test('disabled: events are routed and held, and its configuration is kept', () => {
    const { live, route } = routeOf({}, { disabledMs: DISABLED_MS });
    expect(live).toBe('EndpointDisabled');
    expect(route).toMatchObject({ route: 'open', send: 'held', endpoint: expect.stringContaining('sealed') });
  });

  test.each([
    ['later', DISABLED_MS + 1, 'Live', 'open'],
    ['at that time', DISABLED_MS, 'EndpointDisabled', 'held'],
    ['before', DISABLED_MS - 1, 'EndpointDisabled', 'held'],
  ] as const)('enabled %s', (_when, enabledMs, live, send) => {
    const enabled = routeOf({ enabledAt: at(enabledMs) }, { disabledMs: DISABLED_MS });
    expect(enabled).toMatchObject({ live, route: { send, enabledMs } });
  });

  test.each(['1969-12-31T23:59:59Z', '0001-01-01T00:00:00Z', '2300-01-01T00:00:00Z', '9999-12-31T23:59:59Z'])(
    'an endpoint that was enabled at %s was not enabled, and its route does not contain this time',
    enabledAt => {
      const { live, route } = routeOf({ enabledAt }, { disabledMs: DISABLED_MS });
      expect(live).toBe('EndpointDisabled');
      expect(route).not.toHaveProperty('enabledMs');
    },
  );

  test('an endpoint that was enabled in the future is enabled from then on, even if nothing else changes', () => {
    const enabledMs = NOW_MS + 3_600_000;
    const plain = snapshotOf({
      streams: { orders: {} },
      integrations: { shop: { workspace: 'partner' } },
      subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders' } },
    });
    const [subscription] = plain.subscriptions as [SubscriptionSnapshot];
    const endpoint = { url: 'https://partner.example/hook', enabledAt: at(enabledMs) };
    const snapshot = { ...plain, subscriptions: [{ ...subscription, spec: { ...subscription.spec, endpoint } }] };
    const made = createRoutesMade();
    const enabled = [NOW_MS, enabledMs].map(nowMs => {
      const { integrations: all } = compileRoutes(snapshot, { ...options, nowMs, made }).routes;
      return Object.values(all).flatMap(each => Object.values(each.subscriptions))[0]?.enabledMs;
    });
    expect(enabled).toEqual([undefined, enabledMs]);
  });

  test('is ignored if the subscription is held for another reason, or if there is no limit', () => {
    const suspended = { disabledMs: DISABLED_MS, spec: { suspended: true } as SubscriptionSpec };
    expect(routeOf({}, suspended)).toMatchObject({ live: 'Suspended', route: { route: 'paused', send: 'held' } });
    expect(routeOf({}).route).not.toHaveProperty('maxPerSecond');
    expect(routeOf({ maxPerSecond: 7 }).route).toMatchObject({ maxPerSecond: 7, cap: 64 });
  });
});

describe('a spec that cannot be applied', () => {
  const url = 'https://partner.example/hook';
  const retrySchedule = ['tomorrow'];
  test.each<[string, Partial<Endpoint>, string]>([
    ['a value without room in a part', { maxPerSecond: 100_000 }, 'maxPerSecond: 100000 is out of range'],
    ['a value of the wrong type', { maxPerSecond: 0.5 }, 'maxPerSecond: 0.5 is out of range'],
    ['a duration', { retrySchedule }, 'not a valid duration: tomorrow. Use a value such as 5s, 30m or 1h30m'],
  ])('pauses this subscription alone: %s', (_what, endpoint, detail) => {
    const plain = snapshotOf({
      streams: { orders: {} },
      integrations: { shop: { workspace: 'partner' }, bank: { workspace: 'other' } },
      blocks: ['shop CatalogStream orders SkipToNow'],
      subscriptions: {
        'shop-orders': { integration: 'shop', stream: 'orders' },
        'bank-orders': { integration: 'bank', stream: 'orders', namespace: 'other' },
      },
    });
    const [bad, good] = plain.subscriptions as [SubscriptionSnapshot, SubscriptionSnapshot];
    const spec = { ...bad.spec, endpoint: { url, ...endpoint } };
    const { routes, verdicts } = compileRoutes({ ...plain, subscriptions: [{ ...bad, spec }, good] }, options);
    expect([verdicts.get(bad.uid), verdicts.get(good.uid)]).toEqual([
      { ready: 'Admitted', live: 'SpecRefused', detail },
      { ready: 'Admitted', live: 'Live' },
    ]);
    const [paused, open] = ['shop', 'bank'].map(
      name => Object.values(routes.integrations[publicId('Integration', TENANT, name)]?.subscriptions ?? {})[0],
    );
    expect(paused).toMatchObject({ route: 'paused', send: 'held', endpoint: '', onUnblock: 'skip' });
    expect(paused).not.toHaveProperty('maxPerSecond');
    expect(open).toMatchObject({ route: 'open', send: 'open' });
  });
});

test('a retention that cannot be parsed is the maximum retention, and does not affect other streams', () => {
  const plain = snapshotOf({ streams: { orders: {}, refunds: {} } });
  const [bad, good] = plain.streams as [StreamSnapshot, StreamSnapshot];
  const streams = [{ ...bad, spec: { ...bad.spec, retention: '1d' } }, good];
  const { queues } = compileRoutes({ ...plain, streams }, options).routes;
  expect([queues.orders?.retentionMs, queues.refunds?.retentionMs]).toEqual([720 * 3_600_000, 3_600_000]);
});

test('an error that is not caused by a spec only pauses its subscription, and is reported', () => {
  const plain = snapshotOf({
    streams: { orders: {} },
    integrations: { shop: { workspace: 'partner' }, bank: { workspace: 'other' } },
    subscriptions: {
      'shop-orders': { integration: 'shop', stream: 'orders' },
      'bank-orders': { integration: 'bank', stream: 'orders', namespace: 'other' },
    },
  });
  const [bad, good] = plain.subscriptions as [SubscriptionSnapshot, SubscriptionSnapshot];
  const url = 'https://partner.example/unexpected';
  const spec = { ...bad.spec, endpoint: { url } };
  const error = new TypeError('contains a secret');
  const judgeEndpoint = (given: string) => {
    if (given === url) throw error;
    return 'ok';
  };
  const errors: unknown[] = [];
  const { verdicts } = compileRoutes(
    { ...plain, subscriptions: [{ ...bad, spec }, good] },
    { ...options, judgeEndpoint, onUnexpected: each => errors.push(each) },
  );
  expect(errors).toEqual([error]);
  expect([verdicts.get(bad.uid), verdicts.get(good.uid)]).toEqual([
    { ready: 'Admitted', live: 'SpecRefused', detail: 'an unexpected error occurred' },
    { ready: 'Admitted', live: 'Live' },
  ]);
});

test('the younger of two subscriptions for one pair contains the name of the older one', () => {
  const one = { integration: 'shop', stream: 'orders' };
  const snapshot = snapshotOf({
    streams: { orders: {} },
    integrations: { shop: { workspace: 'partner' } },
    subscriptions: { younger: { ...one, createdMs: 20 }, older: { ...one, createdMs: 10 } },
  });
  const { verdicts } = compileRoutes(snapshot, options);
  expect([...verdicts.values()].find(({ ready }) => ready === 'Duplicate')).toMatchObject({ about: 'older' });
});

describe('the events per second of the account', () => {
  const limits = { byPlan: { Free: { eventsPerSecond: 1_000 }, Metered: {} }, ceilings: { eventsPerSecond: 5_000 } };
  const limitOf = (account: TenantSnapshot['account'] | undefined, policy: typeof limits | undefined = limits) =>
    compileRoutes(
      { ...snapshotOf({}), ...(account === undefined ? {} : { account }) },
      { ...options, ...(policy === undefined ? {} : { limits: policy }) },
    ).routes.eventsPerSecond;

  test('are the limits of its spec or its plan, and do not exceed the ceiling', () => {
    expect(limitOf({ plan: 'Free', short: false })).toBe(1_000);
    expect(limitOf({ plan: 'Free', short: false, limits: { eventsPerSecond: 20 } })).toBe(20);
    expect(limitOf({ plan: 'Metered', short: false })).toBe(5_000);
    expect(limitOf({ plan: 'Metered', short: false, limits: { eventsPerSecond: 0 } })).toBe(0);
    expect(limitOf({ plan: 'Free', short: false, limits: { eventsPerSecond: 9_000 } })).toBe(5_000);
  });

  test('are compiled together with the stored bytes', () => {
    const account = { plan: 'Free' as const, short: false, limits: { storedBytes: 5 } };
    const { routes } = compileRoutes({ ...snapshotOf({}), account }, { ...options, limits });
    expect([routes.eventsPerSecond, routes.storedBytes]).toEqual([1_000, 5]);
  });

  test('are the limits of the Free plan while the account is missing', () => {
    expect(compileRoutes(snapshotOf({}), options).routes).toMatchObject({
      payer: publicId('Account', '', 'main'),
      plan: '',
    });
    expect(limitOf(undefined)).toBe(1_000);
  });

  test('are unlimited without a limit or a policy', () => {
    expect(limitOf({ plan: 'Metered', short: false }, { ...limits, ceilings: {} as typeof limits.ceilings })).toBe(
      undefined,
    );
    expect(compileRoutes(snapshotOf({ account: { plan: 'Free' } }), options).routes.eventsPerSecond).toBe(undefined);
  });
});

import { readdirSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Endpoint } from '../../api/endpoint.ts';
import type { BlockSpec } from '../../api/kinds/block.ts';
import type { SubscriptionSpec } from '../../api/kinds/subscription.ts';
import type { EndpointConfig } from '../delivery/endpoint-config.ts';
import type { HeaderField } from '../delivery/header-field.ts';
import { createKeyRing, keyRingOf } from '../delivery/key-ring.ts';
import { publicId, tenantId } from '../ids/ids.ts';
import { type CompileOptions, compileRoutes } from './compile-routes.ts';
import { createRoutesMade } from './routes-made.ts';
import type { StreamSnapshot, SubscriptionSnapshot, TenantSnapshot } from './snapshot.ts';

const FOLDER = new URL('../../../test/golden/routes/', import.meta.url);
const TENANT = 'acme';
const NOW_MS = 1_000;

/** The short form of a tenant's objects, by name. Omitted fields have their usual value. */
interface Given {
  readonly workspace?: null | 'held';
  /** Undefined if the object does not exist. */
  readonly account?: { plan: 'Free' | 'Metered'; short?: true };
  readonly streams?: Record<string, { public?: boolean; deleting?: boolean }>;
  readonly packages?: Record<string, { streams: string[]; archived?: true; deleting?: true }>;
  readonly integrations?: Record<string, { workspace?: string; declined?: true; revoked?: true; expiresMs?: number }>;
  /** `<integration> <CatalogStream|Package> <target>`, optionally followed by `SkipToNow`. */
  readonly blocks?: readonly string[];
  readonly subscriptions?: Record<string, SubscriptionGiven>;
}
interface SubscriptionGiven {
  readonly integration: string;
  readonly stream: string;
  readonly namespace?: string;
  readonly endpoint?: string | null;
  readonly suspended?: true;
  readonly ordering?: 'None';
  readonly createdMs?: number;
  readonly uid?: string;
  readonly deleting?: true;
  readonly admittedMs?: number | null;
  /** The result for a header with a value from a Secret. */
  readonly fromSecret?: HeaderField;
}
type TargetKind = BlockSpec['target']['kind'];
interface Then {
  /** The account, or `none` without a payer. */
  readonly payer?: string;
  /** The plan of the account. Omitted if the rule does not depend on it. */
  readonly plan?: string;
  readonly queues: Record<string, string>;
  readonly integrations: Record<string, string>;
  readonly routes: Record<string, string>;
  /** Ready, live, and detail, by subscription. */
  readonly verdicts: Record<string, string>;
  /** The subscriptions to which each block applies. Omitted if the rule does not depend on them. */
  readonly blocks?: Record<string, number>;
}

const options: CompileOptions = {
  nowMs: NOW_MS,
  queueMaxBytes: 10,
  judgeEndpoint: url => (url.includes('refused') ? 'refused_by_policy' : 'ok'),
  sealEndpoint: (subscription, { url }) => `sealed ${subscription} ${url}`,
  openHeader: ({ subscription, salt, url }, header, sealed) =>
    sealed === `s2.${subscription}-${salt}-${url}-${header}` ? 'opened' : undefined,
  keys: keyRingOf(new Uint8Array(32)),
};

const HEADERS = [
  { name: 'x-plain', value: 'in the clear' },
  { name: 'Authorization', valueFrom: { secretKeyRef: { name: 'orders-endpoint', key: 'token' } } },
];

function metaOf(name: string, namespace: string, more: { createdMs?: number; uid?: string; deleting?: boolean } = {}) {
  return {
    name,
    namespace,
    uid: more.uid ?? `uid-${name}`,
    createdMs: more.createdMs ?? 1,
    deleting: more.deleting === true,
  };
}

function snapshotOf(given: Given): TenantSnapshot {
  const each = <T>(objects: Record<string, T> | undefined) => Object.entries(objects ?? {});
  return {
    name: TENANT,
    ...(given.workspace === undefined ? { workspace: { spec: { account: 'main' } } } : {}),
    ...(given.workspace === 'held' ? { held: true } : {}),
    ...(given.account === undefined
      ? {}
      : { account: { plan: given.account.plan, short: given.account.short === true } }),
    secretKeys: [],
    streams: each(given.streams).map(([name, stream]) => ({
      ...metaOf(name, TENANT, stream),
      spec: { public: stream.public ?? true, retention: '1h', deletionPolicy: 'Retain' },
    })),
    packages: each(given.packages).map(([name, { deleting, ...spec }]) => ({
      ...metaOf(name, TENANT, { deleting: deleting === true }),
      spec,
    })),
    integrations: each(given.integrations).map(([name, { expiresMs, ...spec }]) => ({
      ...metaOf(name, TENANT),
      spec,
      ...(expiresMs === undefined ? {} : { expiresMs }),
    })),
    blocks: (given.blocks ?? []).map((block, i) => {
      const [integration, kind, name, onUnblock] = block.split(' ') as [string, TargetKind, string, 'SkipToNow'?];
      const spec: BlockSpec = { integration, target: { kind, name }, onUnblock: onUnblock ?? 'Continue' };
      return { ...metaOf(`block-${i}`, TENANT), spec };
    }),
    subscriptions: each(given.subscriptions).map(([name, short]) => {
      const { integration, stream, suspended, fromSecret } = short;
      const url = short.endpoint === undefined ? 'https://partner.example/hook' : short.endpoint;
      const spec: SubscriptionSpec = {
        producer: TENANT,
        integration,
        stream,
        ordering: short.ordering ?? 'ByGroupKey',
        deletionPolicy: 'Retain',
        ...(suspended === undefined ? {} : { suspended }),
        ...(url === null ? {} : { endpoint: { url, ...(fromSecret === undefined ? {} : { headers: HEADERS }) } }),
      };
      const admittedMs = short.admittedMs === undefined ? 500 : short.admittedMs;
      return {
        ...metaOf(name, short.namespace ?? 'partner', short),
        spec,
        salt: 'a-salt',
        ...(admittedMs === null ? {} : { admittedMs }),
        ...(fromSecret === undefined ? {} : { headerFields: [fromSecret] }),
      };
    }),
  };
}

/** Returns the compiled routes in the format of the golden files, using names instead of ids. */
function readable(given: Given): Required<Then> {
  const { routes, verdicts, paused } = compileRoutes(snapshotOf(given), options);
  expect(routes.tenant).toBe(tenantId(TENANT));
  const names = (kind: 'Integration' | 'Subscription', objects: Record<string, { namespace?: string }> | undefined) =>
    new Map(
      Object.entries(objects ?? {}).map(([name, { namespace }]) => [
        publicId(kind, kind === 'Integration' ? TENANT : (namespace ?? 'partner'), name),
        name,
      ]),
    );
  const integrations = names('Integration', given.integrations as Record<string, object>);
  const subscriptions = names('Subscription', given.subscriptions);
  const shown: Record<string, string> = {};
  for (const [int, route] of Object.entries(routes.integrations)) {
    for (const [sub, { queue, route: routing, send, onUnblock, unordered, endpoint }] of Object.entries(
      route.subscriptions,
    )) {
      const extras = [
        ...(onUnblock === 'skip' ? ['then skip'] : []),
        ...(unordered ? ['unordered'] : []),
        ...(endpoint === '' ? ['pull only'] : []),
      ];
      const parts = [`${queue} to ${integrations.get(int)}`, `route ${routing}`, `send ${send}`, ...extras];
      shown[subscriptions.get(sub) ?? sub] = parts.join(', ');
      if (endpoint !== '') expect(endpoint).toBe(`sealed ${sub} https://partner.example/hook`);
    }
  }
  const uids = new Map(
    Object.entries(given.subscriptions ?? {}).map(([name, { uid }]) => [uid ?? `uid-${name}`, name]),
  );
  return {
    payer: routes.payer === '' ? 'none' : routes.payer === publicId('Account', '', 'main') ? 'main' : routes.payer,
    plan: routes.plan,
    queues: Object.fromEntries(Object.entries(routes.queues).map(([name, { state }]) => [name, state])),
    integrations: Object.fromEntries(
      Object.entries(routes.integrations).map(([int, { state }]) => [integrations.get(int) ?? int, state]),
    ),
    routes: shown,
    blocks: Object.fromEntries(
      (given.blocks ?? []).map((block, i) => [block, paused.get(`uid-block-${i}`) ?? 0] as const),
    ),
    verdicts: Object.fromEntries(
      [...verdicts].map(([uid, { ready, live, detail }]) => [
        uids.get(uid) ?? uid,
        [ready, live, ...(detail === undefined ? [] : [detail])].join(' '),
      ]),
    ),
  };
}

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

describe('headers from Secrets', () => {
  const given = (fromSecret: HeaderField): Given => ({
    streams: { orders: {} },
    integrations: { shop: { workspace: 'partner' } },
    subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders', fromSecret } },
  });

  test('are encrypted with the others, and again when a value changes', () => {
    const sealed: EndpointConfig['headers'][] = [];
    const made = createRoutesMade();
    const sealEndpoint: CompileOptions['sealEndpoint'] = (_subscription, { headers }) => `${sealed.push(headers)}`;
    const first = snapshotOf(given({ value: 'Bearer 1' }));
    const second = {
      ...first,
      subscriptions: first.subscriptions.map(each => ({ ...each, headerFields: [{ value: 'Bearer 2' }] })),
    };
    for (const snapshot of [first, first, second]) compileRoutes(snapshot, { ...options, made, sealEndpoint });
    expect(sealed).toEqual([
      { 'x-plain': 'in the clear', Authorization: 'Bearer 1' },
      { 'x-plain': 'in the clear', Authorization: 'Bearer 2' },
    ]);
  });

  test('without a value report their Secret and key, and are not encrypted', () => {
    const faults = ['secret_missing', 'key_missing', 'secret_unread', 'header_value_refused'] as const;
    for (const fault of faults) {
      const { verdicts, routes } = compileRoutes(snapshotOf(given({ fault })), options);
      expect([...verdicts.values()]).toEqual([
        {
          ready: 'Admitted',
          live: fault === 'header_value_refused' ? 'EndpointRefused' : 'WaitingForSecret',
          detail: fault,
          about: 'header Authorization, Secret orders-endpoint, key token',
        },
      ]);
      const [route] = Object.values(routes.integrations).flatMap(({ subscriptions }) => Object.values(subscriptions));
      expect(route).toMatchObject({ route: 'open', send: 'held', endpoint: '' });
    }
  });

  test('that have not been read yet delay the subscription', () => {
    const snapshot = snapshotOf(given({ value: 'x' }));
    const unread = snapshot.subscriptions.map(({ headerFields: _unread, ...rest }) => rest);
    const { verdicts } = compileRoutes({ ...snapshot, subscriptions: unread }, options);
    expect([...verdicts.values()][0]).toMatchObject({ live: 'WaitingForSecret', detail: 'secret_missing' });
  });
});

describe('the salt of the signing secrets', () => {
  const given = snapshotOf({
    streams: { orders: {} },
    integrations: { shop: { workspace: 'partner' } },
    subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders' } },
  });
  const withSalt = (salt: string | undefined): TenantSnapshot => ({
    ...given,
    subscriptions: given.subscriptions.map(({ salt: _salt, ...rest }) => ({
      ...rest,
      ...(salt === undefined ? {} : { salt }),
    })),
  });

  test('is encrypted with the endpoint, and again when it changes', () => {
    const salts: string[] = [];
    const made = createRoutesMade();
    const sealEndpoint: CompileOptions['sealEndpoint'] = (_subscription, { salt }) => `${salts.push(salt)}`;
    for (const salt of ['one', 'one', 'two']) {
      compileRoutes(withSalt(salt), { ...options, made, sealEndpoint });
    }
    expect(salts).toEqual(['one', 'two']);
  });

  test('is required for sending: without a salt, events are routed and not sent', () => {
    const { routes } = compileRoutes(withSalt(undefined), options);
    const [route] = Object.values(routes.integrations).flatMap(({ subscriptions }) => Object.values(subscriptions));
    expect(route).toMatchObject({ route: 'open', send: 'held', endpoint: '' });
  });
});

describe('sealed headers', () => {
  const world = snapshotOf({
    streams: { orders: {} },
    integrations: { shop: { workspace: 'partner' } },
    subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders' } },
  });
  const withSealed = (valueSealed: string): TenantSnapshot => ({
    ...world,
    subscriptions: world.subscriptions.map(each => ({
      ...each,
      spec: {
        ...each.spec,
        endpoint: { url: 'https://partner.example/hook', headers: [{ name: 'x-a', valueSealed }] },
      },
    })),
  });
  const mine = `s2.${publicId('Subscription', 'partner', 'shop-orders')}-a-salt-https://partner.example/hook-x-a`;

  test('are decrypted once for their subscription and header', () => {
    const made = createRoutesMade();
    let opened = 0;
    const openHeader: CompileOptions['openHeader'] = (...asked) => {
      opened++;
      return options.openHeader(...asked);
    };
    const sealed: EndpointConfig['headers'][] = [];
    const sealEndpoint: CompileOptions['sealEndpoint'] = (_subscription, { headers }) => `${sealed.push(headers)}`;
    const snapshot = withSealed(mine);
    for (let n = 0; n < 3; n++) compileRoutes(snapshot, { ...options, made, openHeader, sealEndpoint });
    expect(sealed).toEqual([{ 'x-a': 'opened' }]);
    expect(opened).toBe(1);
  });

  test('that cannot be decrypted hold the claims and are reported', () => {
    const { verdicts, routes } = compileRoutes(withSealed('s2.foreign'), options);
    expect([...verdicts.values()]).toEqual([
      { ready: 'Admitted', live: 'HeaderNotReadable', detail: 'seal_not_opened', about: 'header x-a' },
    ]);
    const [route] = Object.values(routes.integrations).flatMap(({ subscriptions }) => Object.values(subscriptions));
    expect(route).toMatchObject({ route: 'open', send: 'held', endpoint: '' });
  });
});

describe('root keys', () => {
  const world = snapshotOf({
    streams: { orders: {} },
    integrations: { shop: { workspace: 'partner' } },
    subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders' } },
  });
  const files = ['root.key', 'root.key.2'].map((name, i) => ({ name, secret: new Uint8Array(32).fill(i + 1) }));
  const signedBy = (signed: SubscriptionSnapshot['signed'], secretVersion?: number): TenantSnapshot => ({
    ...world,
    subscriptions: world.subscriptions.map(each => ({
      ...each,
      ...(signed === undefined ? {} : { signed }),
      spec: {
        ...each.spec,
        endpoint: { url: 'https://partner.example/hook', ...(secretVersion === undefined ? {} : { secretVersion }) },
      },
    })),
  });

  test('endpoints are only encrypted again when another key becomes the first', () => {
    const keys = createKeyRing(files);
    const made = createRoutesMade();
    let sealed = 0;
    const compile = () => compileRoutes(snapshot, { ...options, keys, made, sealEndpoint: () => `${sealed++}` });
    const snapshot = signedBy({ version: 1 });
    compile();
    compile();
    expect(sealed).toBe(1);
    keys.follow(keys.oldest().fingerprint);
    compile();
    expect(sealed).toBe(2);
  });

  test('a secret keeps its root key, and a new version is derived from the first one', () => {
    const keys = createKeyRing(files);
    const [first, oldest] = [keys.first().id, keys.oldest().id];
    const configOf = (...args: Parameters<typeof signedBy>) => {
      let config: Partial<EndpointConfig> = {};
      compileRoutes(signedBy(...args), {
        ...options,
        keys,
        sealEndpoint: (_subscription, { secretVersion, key, previousKey }) =>
          JSON.stringify((config = { secretVersion, ...(key && { key }), ...(previousKey && { previousKey }) })),
      });
      return config;
    };
    expect(configOf(undefined)).toEqual({ secretVersion: 1 });
    expect(configOf({ version: 1, key: oldest })).toEqual({ secretVersion: 1, key: oldest });
    expect(configOf({ version: 1, key: oldest }, 2)).toEqual({ secretVersion: 2, key: first, previousKey: oldest });
    expect(configOf({ version: 2, key: first }, 2)).toEqual({ secretVersion: 2, key: first });
  });

  test.each<[string, Parameters<typeof signedBy>]>([
    ['the secret', [{ version: 1, key: 'AAAAAAAAAA' }]],
    ['the previous secret', [{ version: 1, key: 'AAAAAAAAAA' }, 2]],
  ])('without the root key of %s, no events are sent, and the id is shown', (_which, args) => {
    const { verdicts, routes } = compileRoutes(signedBy(...args), options);
    expect([...verdicts.values()]).toEqual([
      { ready: 'Admitted', live: 'SigningKeyMissing', detail: 'root_key_missing', about: 'root key AAAAAAAAAA' },
    ]);
    const [route] = Object.values(routes.integrations).flatMap(({ subscriptions }) => Object.values(subscriptions));
    expect(route).toMatchObject({ route: 'open', send: 'held', endpoint: '' });
  });

  test('a secret without the id of its root key is not derived from another one once the oldest is retired', () => {
    const [oldest, ...newer] = files as [(typeof files)[number], ...typeof files];
    const keys = createKeyRing([{ ...oldest, isRetired: true }, ...newer]);
    expect([...compileRoutes(signedBy({ version: 1 }), { ...options, keys }).verdicts.values()]).toEqual([
      { ready: 'Admitted', live: 'SigningKeyMissing', detail: 'root_key_missing', about: 'root key oldest' },
    ]);
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

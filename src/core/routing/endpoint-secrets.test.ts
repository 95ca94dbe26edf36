import { describe, expect, test } from 'vitest';
import type { EndpointConfig } from '../delivery/endpoint-config.ts';
import type { HeaderField } from '../delivery/header-field.ts';
import { createKeyRing } from '../delivery/key-ring.ts';
import { publicId } from '../ids/ids.ts';
import { type CompileOptions, compileRoutes } from './compile-routes.ts';
import { createRoutesMade } from './routes-made.ts';
import type { SubscriptionSnapshot, TenantSnapshot } from './snapshot.ts';
import { type Given, options, snapshotOf } from './testing/tenants.ts';

/** A tenant with one live subscription. */
const WORLD = snapshotOf({
  streams: { orders: {} },
  integrations: { shop: { workspace: 'partner' } },
  subscriptions: { 'shop-orders': { integration: 'shop', stream: 'orders' } },
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

  test('that cannot be read report why', () => {
    const { verdicts } = compileRoutes(snapshotOf(given({ fault: 'secret_unread', why: 'access denied' })), options);
    expect([...verdicts.values()]).toEqual([
      {
        ready: 'Admitted',
        live: 'WaitingForSecret',
        detail: 'access denied',
        about: 'header Authorization, Secret orders-endpoint, key token',
      },
    ]);
  });

  test('that have not been read yet delay the subscription', () => {
    const snapshot = snapshotOf(given({ value: 'x' }));
    const unread = snapshot.subscriptions.map(({ headerFields: _unread, ...rest }) => rest);
    const { verdicts } = compileRoutes({ ...snapshot, subscriptions: unread }, options);
    expect([...verdicts.values()][0]).toMatchObject({ live: 'WaitingForSecret', detail: 'secret_missing' });
  });
});

describe('the salt of the signing secrets', () => {
  const withSalt = (salt: string | undefined): TenantSnapshot => ({
    ...WORLD,
    subscriptions: WORLD.subscriptions.map(({ salt: _salt, ...rest }) => ({
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
  const withSealed = (valueSealed: string): TenantSnapshot => ({
    ...WORLD,
    subscriptions: WORLD.subscriptions.map(each => ({
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
  const files = ['root.key', 'root.key.2'].map((name, i) => ({ name, secret: new Uint8Array(32).fill(i + 1) }));
  const signedBy = (signed: SubscriptionSnapshot['signed'], secretVersion?: number): TenantSnapshot => ({
    ...WORLD,
    subscriptions: WORLD.subscriptions.map(each => ({
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

import type { LookupAddress } from 'node:dns';
import { afterEach, describe, expect, test } from 'vitest';
import { createNetworkPolicy } from '../../../core/delivery/network.ts';
import { type NameAnswer, type Question, startNameServer } from '../testing/name-server.ts';
import { createNameLookup, createNameResolver, type ResolveName } from './name-lookup.ts';
import { parseHosts, type ResolverConfig, readResolverConfig } from './resolver-config.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const policy = createNetworkPolicy({ allowedNetworks: ['127.0.0.2'] });

function lookupWith(resolveName: ResolveName, all: boolean): Promise<unknown> {
  const lookup = createNameLookup(policy, resolveName);
  return new Promise(resolve => {
    lookup('partner.test', { all }, (error, address, family) =>
      resolve(error === null ? (family === undefined ? address : { address, family }) : error.code),
    );
  });
}

const answering =
  (...addresses: string[]): ResolveName =>
  (_name, _options, done) =>
    done(
      null,
      addresses.map((address): LookupAddress => ({ address, family: address.includes(':') ? 6 : 4 })),
    );

const failing: ResolveName = (_name, _options, done) =>
  done(Object.assign(new Error('not found'), { code: 'ENOTFOUND' }), []);

test('only returns permitted addresses, in their order', async () => {
  const mixed = answering('10.0.0.1', '2606:4700::1111', '127.0.0.1', 'fe80::1%lo', '127.0.0.2', '::1');
  expect(await lookupWith(mixed, true)).toEqual([
    { address: '2606:4700::1111', family: 6 },
    { address: '127.0.0.2', family: 4 },
  ]);
  expect(await lookupWith(mixed, false)).toEqual({ address: '2606:4700::1111', family: 6 });
});

test('distinguishes refused addresses, missing addresses, and errors of the resolver', async () => {
  expect(await lookupWith(answering('10.0.0.1', '::1'), true)).toBe('SLUICE_ADDRESS_REFUSED');
  expect(await lookupWith(answering(), true)).toBe('ENODATA');
  expect(await lookupWith(failing, true)).toBe('ENOTFOUND');
});

test('shares a lookup between concurrent callers, and starts another lookup after that', async () => {
  const asked: Parameters<ResolveName>[2][] = [];
  const lookup = createNameLookup(policy, (_name, _options, done) => asked.push(done));
  const answers: unknown[] = [];
  const ask = () => lookup('partner.test', { all: true }, (error, addresses) => answers.push(error ?? addresses));
  ask();
  ask();
  expect(asked).toHaveLength(1);
  asked[0]?.(null, [{ address: '127.0.0.2', family: 4 }]);
  expect(answers).toHaveLength(2);
  ask();
  expect(asked).toHaveLength(2);
});

describe('the resolver of deliveries', () => {
  const closing: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });

  async function serve(script: (question: Question) => NameAnswer | undefined, given: Partial<ResolverConfig> = {}) {
    const names = await startNameServer(script);
    closing.push(names.close);
    const clock = { ms: 0 };
    const config = { searchDomains: [], hosts: new Map(), prefersIpv6: false, nameServers: [names.address], ...given };
    const resolveName = createNameResolver({ readConfig: () => config, monotonicMs: () => clock.ms });
    /** Returns the addresses, or the code of the failure. */
    const resolve = (hostname: string) =>
      new Promise<unknown>(done => {
        resolveName(hostname, { all: true }, (error, found) =>
          done(error === null ? found.map(({ address }) => address) : (error as NodeJS.ErrnoException).code),
        );
      });
    return { names, clock, config, resolve, asked: () => names.questions.map(({ name }) => name) };
  }

  const FOUND: NameAnswer = { addresses: ['127.0.0.2', '::1'] };
  const UNKNOWN: NameAnswer = { rcode: 'NXDOMAIN' };

  test('a name server that does not respond does not delay other names', async () => {
    const { resolve, asked } = await serve(({ name }) => (name.startsWith('silent') ? undefined : FOUND));
    let ended = 0;
    for (let n = 0; n < 50; n++) void resolve(`silent-${n}.example`).then(() => ended++);
    await expect.poll(() => new Set(asked()).size, SOON).toBe(50);
    expect(await resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
    expect(ended).toBe(0);
    // The threads of `dns.lookup` are only used by the rest of the process.
    expect(process.getActiveResourcesInfo()).not.toContain('GetAddrInfoReqWrap');
  });

  test('a name server that stops responding does not delay other names', async () => {
    const { resolve, asked } = await serve(({ name, nth }) =>
      name === 'partner.example' ? FOUND : nth === 1 ? UNKNOWN : undefined,
    );
    const denied = Array.from({ length: 50 }, (_, n) => `denied-${n}.example`);
    expect(new Set(await Promise.all(denied.map(resolve)))).toEqual(new Set(['ENODATA']));
    expect(await resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
    expect(asked().length).toBe(2 * (denied.length + 1));
  });

  test('fails before the connect timeout if no name server responds', { timeout: 30_000 }, async () => {
    const servers = await Promise.all([serve(() => undefined), serve(() => undefined), serve(() => undefined)]);
    const { resolve } = await serve(() => undefined, { nameServers: servers.map(({ names }) => names.address) });
    const startedMs = performance.now();
    expect(await resolve('partner.example')).toBe('EAI_AGAIN');
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(servers.every(({ asked }) => asked().length > 0)).toBe(true);
  });

  test('repeats a lost query', async () => {
    const { resolve } = await serve(({ nth }) => (nth === 1 ? undefined : FOUND));
    expect(await resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
  });

  test('uses the hosts file for localhost, without a query to a name server', async () => {
    const { resolve, asked } = await serve(() => UNKNOWN, { hosts: readResolverConfig().hosts });
    expect(await resolve('localhost')).toContain('127.0.0.1');
    expect(asked()).toEqual([]);
  });

  test('prefers the hosts file to name servers', async () => {
    const { resolve } = await serve(() => FOUND, { hosts: parseHosts('10.0.0.7 partner.example') });
    expect(await resolve('partner.example')).toEqual(['10.0.0.7']);
    expect(await resolve('other.partner.example')).toEqual(['127.0.0.2', '::1']);
  });

  describe('search domains', () => {
    const searchDomains = ['svc.cluster.local', 'cluster.local'];

    test('are appended to a name that has no address', async () => {
      const known = 'pay.shop.cluster.local';
      const { resolve, asked } = await serve(({ name }) => (name === known ? FOUND : UNKNOWN), { searchDomains });
      expect(await resolve('pay.shop')).toEqual(['127.0.0.2', '::1']);
      expect([...new Set(asked())]).toEqual(['pay.shop', 'pay.shop.svc.cluster.local', known]);
    });

    test.each<[string, string, NameAnswer, unknown]>([
      ['that has an address', 'pay.shop', FOUND, ['127.0.0.2', '::1']],
      ['that ends with a dot', 'pay.shop.', UNKNOWN, 'ENODATA'],
      ['whose server fails', 'pay.shop', { rcode: 'SERVFAIL' }, 'EAI_AGAIN'],
    ])('are not appended to a name %s', async (_what, name, answer, expected) => {
      const { resolve, asked } = await serve(() => answer, { searchDomains });
      expect(await resolve(name)).toEqual(expected);
      expect([...new Set(asked())]).toEqual(['pay.shop']);
    });
  });

  test('returns the preferred address family first', async () => {
    const { resolve } = await serve(() => FOUND, { prefersIpv6: true, hosts: parseHosts('10.0.0.7 a\n::7 a') });
    expect(await resolve('partner.example')).toEqual(['::1', '127.0.0.2']);
    expect(await resolve('a')).toEqual(['::7', '10.0.0.7']);
  });

  test.each([
    ['IPv6', { prefersIpv6: false }, 'A', '127.0.0.2'],
    ['IPv4', { prefersIpv6: true }, 'AAAA', '::7'],
  ] as const)(
    'the addresses are used even if there is no answer for %s',
    async (_family, config, answered, address) => {
      const { resolve } = await serve(({ type }) => (type === answered ? { addresses: [address] } : undefined), config);
      const startedMs = performance.now();
      expect(await resolve('partner.example')).toEqual([address]);
      // Otherwise, there would be no time left for opening the connection.
      expect(performance.now() - startedMs).toBeLessThan(2_000);
    },
  );

  test('an address family that the machine does not prefer does not replace a late one', async () => {
    const { resolve } = await serve(({ type }) =>
      type === 'A' ? { addresses: ['127.0.0.2'], afterMs: 800 } : { addresses: ['::7'] },
    );
    expect(await resolve('partner.example')).toEqual(['127.0.0.2', '::7']);
  });

  test('an address family that fails does not affect the other one', async () => {
    const { resolve } = await serve(({ type }) => (type === 'A' ? FOUND : { rcode: 'SERVFAIL' }));
    expect(await resolve('partner.example')).toEqual(['127.0.0.2']);
  });

  test.each<[string, NameAnswer]>([
    ['ENODATA', UNKNOWN],
    ['ENODATA', {}],
    ['EAI_AGAIN', { rcode: 'SERVFAIL' }],
  ])('a failure is cached for three seconds, and the query is repeated afterwards: %s', async (code, answer) => {
    let said = answer;
    const { resolve, asked, clock } = await serve(() => said);
    expect(await resolve('partner.example')).toBe(code);
    said = FOUND;
    clock.ms += 2_999;
    expect(await resolve('partner.example')).toBe(code);
    expect(asked().length).toBe(2);
    clock.ms += 1;
    expect(await resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
    expect(asked().length).toBe(4);
    // Found addresses are not cached.
    expect(await resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
    expect(asked().length).toBe(6);
  });

  test('the last 10,000 failures are cached', async () => {
    const { resolve, asked } = await serve(() => UNKNOWN);
    await resolve('first.example');
    await resolve('second.example');
    // Name servers are not queried for these names (RFC 7686).
    await Promise.all(Array.from({ length: 9_999 }, (_, n) => resolve(`n${n}.onion`)));
    await resolve('second.example');
    expect(asked().length).toBe(4);
    await resolve('first.example');
    expect(asked().length).toBe(6);
  });

  test('the configuration of the machine is read again after ten seconds', async () => {
    const [old, next] = [await serve(() => FOUND), await serve(() => ({ addresses: ['127.0.0.3'] }))];
    expect(await old.resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
    Object.assign(old.config, next.config);
    old.clock.ms += 9_999;
    expect(await old.resolve('partner.example')).toEqual(['127.0.0.2', '::1']);
    old.clock.ms += 1;
    expect(await old.resolve('partner.example')).toEqual(['127.0.0.3']);
  });
});

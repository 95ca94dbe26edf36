import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createEndpointClient } from './endpoint-client.ts';
import { createNameResolver } from './http/name-lookup.ts';
import { type NameAnswer, type Question, startNameServer } from './testing/name-server.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

/** Represents a public address: the only address that is permitted. */
const PUBLIC = '127.0.0.2';
const REFUSED = ['127.0.0.1', '127.0.0.3', '127.255.255.254', '::1'];
/** A refused address without a server. */
const ELSEWHERE = ['10.0.0.1', '169.254.169.254', '192.168.1.1', '0.0.0.0', '::', 'fd00:ec2::254', '64:ff9b::7f00:1'];

/** Accepts connections to any address of this machine on its port, and records the addresses. */
let listener: Server;
let port = 0;
const heard: string[] = [];
beforeAll(async () => {
  listener = createServer(socket => {
    heard.push(socket.localAddress?.replace('::ffff:', '') ?? '');
    socket.on('error', () => {}).destroy();
  });
  listener.listen(0, '::');
  await once(listener, 'listening');
  ({ port } = listener.address() as AddressInfo);
});
afterAll(() => new Promise(resolve => listener.close(resolve)));

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
  heard.length = 0;
});

/**
 * The resolver of deliveries, except for the name server. Its clock jumps forward so that failures are not cached for
 * the next attempt.
 */
function resolverOf(address: string) {
  let leaps = 0;
  const config = { nameServers: [address], searchDomains: [], hosts: new Map(), prefersIpv6: false };
  return createNameResolver({ readConfig: () => config, monotonicMs: () => 60_000 * leaps++ });
}

async function ask(script: (question: Question) => NameAnswer | undefined, connectTimeoutMs = 5_000) {
  const names = await startNameServer(script);
  const client = createEndpointClient({
    allowedNetworks: [`${PUBLIC}/32`],
    resolveName: resolverOf(names.address),
    connectTimeoutMs,
  });
  closing.push(names.close, client.close);
  const attempt = async (name = 'partner.example') => {
    const url = `https://${name}:${port}/`;
    return (await client.attempt({ url, headers: '', body: Buffer.from('{}'), timeoutMs: 10_000 })).reason;
  };
  return { names, attempt };
}

const only = (...addresses: string[]) => addresses.filter(address => heard.includes(address));

describe('a name', () => {
  test('with the public address is contacted', async () => {
    const { attempt, names } = await ask(() => ({ addresses: [PUBLIC] }));
    expect(await attempt()).toBe('tls_error');
    expect(heard).toEqual([PUBLIC]);
    expect(new Set(names.questions.map(({ type }) => type))).toEqual(new Set(['A', 'AAAA']));
  });

  test.each([...REFUSED, ...ELSEWHERE])('with %s is not contacted', async address => {
    const { attempt } = await ask(() => ({ addresses: [address] }));
    expect(await attempt()).toBe('address_refused');
    expect(heard).toEqual([]);
  });

  test('whose address changes each time is only contacted if it is the public address', async () => {
    const { attempt } = await ask(({ nth }) => ({ addresses: nth % 2 === 1 ? [PUBLIC] : REFUSED }));
    const reasons = [];
    for (let n = 0; n < 20; n++) reasons.push(await attempt());
    expect(reasons).toEqual(Array.from({ length: 10 }, () => ['tls_error', 'address_refused']).flat());
    expect(heard).toEqual(Array.from({ length: 10 }, () => PUBLIC));
  });

  test('is checked using both responses if it changes between them', async () => {
    const { attempt } = await ask(({ type, nth }) => ({ addresses: type === 'A' && nth === 1 ? [PUBLIC] : REFUSED }));
    expect(await attempt()).toBe('tls_error');
    expect(await attempt()).toBe('address_refused');
    expect(heard).toEqual([PUBLIC]);
  });

  test('with public and other addresses, in any order, is contacted at the public address', async () => {
    let order: string[] = [];
    const { attempt } = await ask(() => ({ addresses: order }));
    const mixed = [...REFUSED, ...ELSEWHERE];
    for (let at = 0; at <= mixed.length; at++) {
      order = mixed.toSpliced(at, 0, PUBLIC);
      expect(await attempt()).toBe('tls_error');
    }
    expect(heard).toEqual(Array.from({ length: mixed.length + 1 }, () => PUBLIC));
  });

  test('that refers to another name is evaluated by the final address', async () => {
    const chain = ['a.example', 'b.example', 'localhost', 'c.example', 'partner.internal'];
    let end = PUBLIC;
    const { attempt } = await ask(() => ({ cnames: chain, addresses: [end] }));
    expect(await attempt()).toBe('tls_error');
    for (end of REFUSED) expect(await attempt()).toBe('address_refused');
    expect(heard).toEqual([PUBLIC]);
  });

  test.each([
    'metadata.google.internal',
    'metadata',
    'instance-data.ec2.internal',
    'localhost.localdomain',
    'kubernetes.default.svc',
  ])('%s is evaluated like any other', async name => {
    const { attempt } = await ask(() => ({ addresses: ['169.254.169.254', '127.0.0.1', '10.96.0.1'] }));
    expect(await attempt(name)).toBe('address_refused');
    expect(heard).toEqual([]);
  });

  test('is resolved using TCP if the response is too large for UDP', async () => {
    const many = Array.from({ length: 300 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
    let last = PUBLIC;
    const { attempt, names } = await ask(() => ({ addresses: [...many, last], truncated: true }));
    expect(await attempt()).toBe('tls_error');
    last = '127.0.0.1';
    expect(await attempt()).toBe('address_refused');
    expect(heard).toEqual([PUBLIC]);
    expect(names.questions.some(({ over }) => over === 'tcp')).toBe(true);
  });

  test.each<[string, NameAnswer]>([
    ['without any address', {}],
    ['that leads nowhere', { cnames: ['nowhere.example'] }],
    ['that does not exist', { rcode: 'NXDOMAIN' }],
    ['whose server fails', { rcode: 'SERVFAIL' }],
    ['whose server refuses', { rcode: 'REFUSED' }],
  ])('%s is a failed attempt', async (_what, answer) => {
    const { attempt } = await ask(() => answer);
    expect(await attempt()).toBe('dns_failed');
    expect(heard).toEqual([]);
  });

  test('times out if the response is too late, and no connection is opened', async () => {
    const { attempt, names } = await ask(() => ({ addresses: [PUBLIC, ...REFUSED], afterMs: 200 }), 80);
    expect(await attempt()).toBe('connect_timeout');
    await expect.poll(names.answered, SOON).toBe(2);
    // The responses have been read when a later attempt has ended. The later attempt uses another name so that it does
    // not share them.
    expect(await attempt('later.example')).toBe('connect_timeout');
    expect(heard).toEqual([]);
  });

  test('without a response is a timeout', async () => {
    const { attempt } = await ask(() => undefined, 80);
    expect(await attempt()).toBe('connect_timeout');
  });
});

test('uses the next address if the first one does not respond', async () => {
  const server = createServer(socket => socket.on('error', () => {}).destroy()).listen(0, PUBLIC);
  await once(server, 'listening');
  closing.push(() => new Promise<void>(resolve => server.close(() => resolve())));
  const { port: own } = server.address() as AddressInfo;
  const names = await startNameServer(() => ({ addresses: ['127.0.0.8', '127.0.0.9', '::1', PUBLIC] }));
  const client = createEndpointClient({ allowedNetworks: ['127.0.0.0/8'], resolveName: resolverOf(names.address) });
  closing.push(names.close, client.close);
  const url = `https://partner.example:${own}/`;
  // The address was reached. The server does not use TLS.
  expect(await client.attempt({ url, headers: '', body: Buffer.from('{}') })).toMatchObject({ reason: 'tls_error' });
});

test('is only contacted at the public address, regardless of the responses', async () => {
  // The public address is used often, so that there are many connections.
  const answers = fc.array(fc.constantFrom(PUBLIC, PUBLIC, PUBLIC, ...REFUSED, ...ELSEWHERE), { maxLength: 6 });
  let said: readonly string[][] = [];
  let next = 0;
  const { attempt } = await ask(() => ({ addresses: said[next++ % said.length] ?? [] }));
  await fc.assert(
    fc.asyncProperty(fc.array(answers, { minLength: 1, maxLength: 4 }), async lists => {
      [said, next] = [lists, 0];
      // Attempts are concurrent, so that they share lookups and race for connections.
      const reasons = await Promise.all(Array.from({ length: 4 }, () => attempt()));
      for (const reason of reasons) expect(reason).toMatch(/^(tls_error|address_refused|dns_failed)$/);
    }),
    { numRuns: 60 },
  );
  expect(only(...REFUSED)).toEqual([]);
  expect(heard.length).toBeGreaterThan(20);
});

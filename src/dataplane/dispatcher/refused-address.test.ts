import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { createSecureContext } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { endpointUrl } from '../../api/endpoint-url.ts';
import { createNetworkPolicy } from '../../core/delivery/network.ts';
import { createEndpointClient } from './endpoint-client.ts';
import { createConnector } from './http/connector.ts';
import { createNameResolver, type ResolveName } from './http/name-lookup.ts';
import { readResolverConfig } from './http/resolver-config.ts';
import { startNameServer } from './testing/name-server.ts';

/** Accepts connections to any address of this machine on its port. */
let listener: Server;
let port = 0;
let heard = 0;

beforeAll(async () => {
  listener = createServer(socket => {
    heard += 1;
    socket.on('error', () => {});
    socket.destroy();
  });
  listener.listen(0, '::');
  await once(listener, 'listening');
  const address = listener.address();
  port = typeof address === 'object' ? (address?.port ?? 0) : 0;
});
afterAll(() => new Promise(resolve => listener.close(resolve)));
beforeEach(() => {
  heard = 0;
});

const LOOPBACK = [
  ['127.0.0.1', '127.1', '127.0.1', '127.0.0.1.', '127.255.255.254', '2130706433', '0x7f000001', '0x7F.0.0.1'],
  ['0x7f.1', '0x7f.0.1', '0177.0.0.1', '017700000001', '00000177.0.0.1', '127.0x0.0.1', '0177.0.0.0x1', '0', '0x0'],
  ['0.0.0.0', '00', '①②⑦.⓪.⓪.①', '１２７.０.０.１', '127。0。0。1', '127．0．0．1', '127｡0｡0｡1', '⑯⑨', '𝟙𝟚𝟟.𝟘.𝟘.𝟙'],
  ['%31%32%37.0.0.1', '127%2e0%2e0%2e1', '%30%78%37%66%30%30%30%30%30%31', '127.0.0.\u00ad1', '127.0.0.1\u200b'],
  ['localhost', 'LOCALHOST', 'localhost.', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', 'loc%61lhost'],
  ['[::1]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::0.0.0.1]', '[::]', '[::0.0.0.0]', '[0::]', '[::ffff:0.0.0.0]'],
  ['[::ffff:0:127.0.0.1]', '[::ffff:0:0]', '[::1%25lo]', '[fe80::1]', '[fe80::1%25lo]', '[fec0::1]', '[fc00::1]'],
  ['[fd00:ec2::254]', '[ff02::1]', '[ff0e::1]', '[100::1]', '[100:0:0:1::1]', '[2001:db8::1]', '[3fff::1]'],
  [
    '%6cocalhost',
    'localhost%2e',
    'localhost%E3%80%82',
    'ＬＯＣＡＬＨＯＳＴ',
    'localhost。',
    'loca\u00adlhost',
    'ip6-localhost',
  ],
  ['metadata', 'metadata.google.internal', 'metadata.google.internal.', 'instance-data', 'kubernetes.default.svc'],
  ['0x7f.0x0.0x0.0x1', '0x7f.0.1', '0X7F000001', '0x0000007f.1', '0177.0x0.1', '127.0.0x1', '127.0.0.0x1', '127.0.01'],
  [
    '[::ffff:7f00:0001]',
    '[0:0:0:0:0:ffff:127.0.0.1]',
    '[::FFFF:7F00:1]',
    '[::%66fff:127.0.0.1]',
    '[::1]%2e',
    '[::127.1]',
  ],
  [
    '[fe80::5efe:127.0.0.1]',
    '[2001:0:7f00:1::]',
    '[64:ff9b:1:7f00:1::]',
    '[ff01::1]',
    '[ff05::2]',
    '[fe90::1]',
    '[febf::1]',
  ],
  [
    '127.0.0.1%00',
    '127.0.0.1%09',
    '127.0.0.1%2f',
    '127.0.0.1%5c',
    '127.0.0.256',
    '4294967296',
    '1.2.3.4.5',
    '0x100000000',
  ],
  ['[5f00::1]', '[4000::1]', '[2001::1]', '[2001:0:4136:e378:8000:63bf:80ff:fffe]', '[64:ff9b:1::7f00:1]'],
].flat();

/** One address of each refused network, which is tested in all notations. */
const IPV4 = [
  [0, 1, 2, 3],
  [10, 0, 0, 1],
  [100, 64, 0, 1],
  [100, 100, 100, 200],
  [127, 0, 0, 1],
  [168, 63, 129, 16],
  [169, 254, 169, 254],
  [172, 16, 0, 1],
  [172, 31, 255, 254],
  [192, 0, 0, 192],
  [192, 0, 2, 1],
  [192, 88, 99, 1],
  [192, 168, 1, 1],
  [198, 18, 0, 1],
  [198, 51, 100, 1],
  [203, 0, 113, 1],
  [224, 0, 0, 1],
  [255, 255, 255, 255],
];

function spellings(octets: number[]): string[] {
  const dotted = octets.join('.');
  const value = octets.reduce((sum, octet) => sum * 256 + octet, 0);
  const [a = 0, b = 0, c = 0, d = 0] = octets;
  const groups = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  const fullWidth = (text: string) => text.replace(/\d/g, digit => String.fromCharCode(0xff10 + Number(digit)));
  return [
    dotted,
    String(value),
    `0x${value.toString(16)}`,
    `0${value.toString(8)}`,
    octets.map(octet => `0x${octet.toString(16)}`).join('.'),
    octets.map(octet => `0${octet.toString(8)}`).join('.'),
    `${a}.${(b * 256 + c) * 256 + d}`,
    `[::ffff:${dotted}]`,
    `[::ffff:${groups}]`,
    `[::${dotted}]`,
    `[64:ff9b::${dotted}]`,
    `[2002:${groups}::1]`,
    `${dotted}.`,
    `0X${value.toString(16).toUpperCase().padStart(10, '0')}`,
    `${a}.${b}.${c * 256 + d}`,
    `0x${a.toString(16)}.0${b.toString(8)}.${c * 256 + d}`,
    fullWidth(dotted),
    dotted.replaceAll('.', '\u3002'),
    dotted.replaceAll('.', '\uff61'),
    dotted.replaceAll('.', '%2e'),
    [...dotted].map(character => `%${character.charCodeAt(0).toString(16)}`).join(''),
    `[::ffff:0:${dotted}]`,
    `[64:ff9b:1::${dotted}]`,
    `[fe80::5efe:${dotted}]`,
  ];
}

const TRICKS = [
  (p: number) => `https://example.test@127.0.0.1:${p}/`,
  (p: number) => `https://127.0.0.1:${p}#@example.test/`,
  (p: number) => `https://127.0.0.1:${p}\\@example.test/`,
  (p: number) => `https:\\\\127.0.0.1:${p}\\`,
  (p: number) => `https:127.0.0.1:${p}`,
  (p: number) => `https:/127.0.0.1:${p}/`,
  (p: number) => `https:////127.0.0.1:${p}/`,
  (p: number) => `HtTpS://127.0.0.1:${p}/`,
  (p: number) => ` https://127.0.0.1:${p}/`,
  (p: number) => `ht\ntps://127.0.0.1:${p}/`,
  (p: number) => `https://127.0.\t0.1:${p}/`,
  (p: number) => `ftp://127.0.0.1:${p}/`,
  (p: number) => `ws://127.0.0.1:${p}/`,
  (p: number) => `file:///127.0.0.1:${p}/`,
  (p: number) => `//127.0.0.1:${p}/`,
  (p: number) => `127.0.0.1:${p}`,
  () => '',
];

const toThisMachine: ResolveName = (_name, _options, done) =>
  done(null, [
    { address: '127.0.0.1', family: 4 },
    { address: '::1', family: 6 },
  ]);

const attemptOf = (client: ReturnType<typeof createEndpointClient>, url: string) =>
  client.attempt({ url, headers: '', body: Buffer.from('{}'), timeoutMs: 2000 });

describe('addresses that are not public', () => {
  const hosts = [...LOOPBACK, ...IPV4.flatMap(spellings)];
  const urls = [
    ...hosts.flatMap(host => [() => `https://${host}:${port}/`, () => `http://${host}:${port}/`]),
    ...TRICKS.map(trick => () => trick(port)),
  ];

  test(`are refused in ${urls.length} notations, and there is no connection`, async () => {
    expect(urls.length).toBeGreaterThan(1_000);
    // In this test, these names resolve to this machine.
    const client = createEndpointClient({ allowedNetworks: [], resolveName: toThisMachine });
    for (const url of urls) {
      const { outcome, reason } = await attemptOf(client, url());
      expect({ url: url(), outcome, reason }).toEqual({
        url: url(),
        outcome: 'failed',
        reason: expect.stringMatching(/^(address|endpoint)_refused$/),
      });
    }
    expect(heard).toBe(0);
    await client.close();
  });

  test('are refused when connecting, even if a Subscription can contain them', () => {
    const admitted = urls.filter(url => endpointUrl().safeParse(url()).success).length;
    expect(admitted).toBeGreaterThan(800);
    expect(urls.length - admitted).toBeGreaterThan(200);
  });

  test('would be contacted if they were not refused', async () => {
    const client = createEndpointClient({ allowedNetworks: ['0.0.0.0/0', '::/0'], resolveName: toThisMachine });
    const open = ['127.1', '0x7f000001', '①②⑦.⓪.⓪.①', '[::1]', '[::ffff:127.0.0.1]', '0', 'localhost', '127.0.0.1.'];
    for (const host of open) await attemptOf(client, `https://${host}:${port}/`);
    expect(heard).toBe(open.length);
    await client.close();
  });

  test('are refused by the socket, even if the URL was not checked before', async () => {
    // These also resolve to this machine.
    const names = await startNameServer(() => ({ addresses: ['127.0.0.1', '::1'] }));
    const readConfig = () => ({ ...readResolverConfig(), nameServers: [names.address] });
    const connect = createConnector({
      policy: createNetworkPolicy({ allowedNetworks: [] }),
      connectTimeoutMs: 2000,
      secureContext: createSecureContext(),
      resolveName: createNameResolver({ readConfig }),
    });
    const literals = ['127.0.0.1', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1', '::ffff:7f00:1', '0:0:0:0:0:0:0:1'];
    // For Node, these are names.
    const numeric = ['127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0', 'localhost'];
    for (const hostname of [...literals, ...numeric]) {
      for (const tls of [true, false]) {
        const reason = await new Promise(resolve => {
          connect({ hostname, port, tls }, {}, error => resolve(error?.reason ?? 'connected'));
        });
        expect({ hostname, reason }).toEqual({ hostname, reason: 'address_refused' });
      }
    }
    expect(heard).toBe(0);
    expect(new Set(names.questions.map(({ name }) => name))).toEqual(new Set(numeric.slice(0, -1)));
    await names.close();
  });
});

const resolveTo =
  (...answers: string[][]): ResolveName =>
  (_name, _options, done) => {
    const addresses = answers.length > 1 ? answers.shift() : answers[0];
    done(
      null,
      (addresses ?? []).map(address => ({ address, family: address.includes(':') ? 6 : 4 })),
    );
  };

describe('the addresses of a name', () => {
  test.each(
    [
      IPV4.map(octets => octets.join('.')),
      ['::1', '::', '::ffff:127.0.0.1', '64:ff9b::7f00:1', '2002:7f00:1::', 'fe80::1', 'fe80::1%lo', 'fd00:ec2::254'],
    ].flat(),
  )('%s is refused', async address => {
    const client = createEndpointClient({ allowedNetworks: [], resolveName: resolveTo([address]) });
    expect(await attemptOf(client, `https://partner.test:${port}/`)).toMatchObject({
      outcome: 'failed',
      reason: 'address_refused',
    });
    expect(heard).toBe(0);
    await client.close();
  });

  test('are checked for each connection, so a name that changes is refused', async () => {
    // 127.0.0.2 represents the public address that the name has at first.
    const client = createEndpointClient({
      allowedNetworks: ['127.0.0.2'],
      resolveName: resolveTo(['127.0.0.2'], ['127.0.0.1']),
    });
    expect(await attemptOf(client, `https://partner.test:${port}/`)).toMatchObject({ reason: 'tls_error' });
    expect(heard).toBe(1);
    expect(await attemptOf(client, `https://partner.test:${port}/`)).toMatchObject({ reason: 'address_refused' });
    expect(heard).toBe(1);
    await client.close();
  });

  test('are never in a network that the operator refuses, even if another setting allows it', async () => {
    const client = createEndpointClient({
      allowedNetworks: ['127.0.0.0/8'],
      refusedNetworks: ['127.0.0.1'],
      resolveName: resolveTo(['127.0.0.1'], ['127.0.0.1', '127.0.0.2'], ['127.0.0.1']),
    });
    const reasons = [];
    for (let n = 0; n < 3; n++) reasons.push((await attemptOf(client, `https://partner.test:${port}/`)).reason);
    expect([reasons, heard]).toEqual([['address_refused', 'tls_error', 'address_refused'], 1]);
    expect(await attemptOf(client, `http://127.0.0.1:${port}/`)).toMatchObject({ reason: 'address_refused' });
    expect(heard).toBe(1);
    await client.close();
  });

  test('are not contacted at a port that the operator does not allow', async () => {
    const options = { allowedNetworks: ['127.0.0.0/8'], resolveName: resolveTo(['127.0.0.2']) };
    for (const [allowedPorts, reason] of [
      [[port + 1], 'endpoint_refused'],
      [[port + 1, port], 'tls_error'],
    ] as const) {
      const client = createEndpointClient({ ...options, allowedPorts });
      expect(await attemptOf(client, `https://partner.test:${port}/`)).toMatchObject({ reason });
      await client.close();
    }
    expect(heard).toBe(1);
  });

  test('can include refused addresses, in which case only a permitted address is used', async () => {
    const client = createEndpointClient({
      allowedNetworks: ['127.0.0.2'],
      resolveName: resolveTo(['10.0.0.1', '127.0.0.1', '127.0.0.2', '::1']),
    });
    expect(await attemptOf(client, `https://partner.test:${port}/`)).toMatchObject({ reason: 'tls_error' });
    expect(heard).toBe(1);
    await client.close();
  });
});

import type { NetworkInterfaceInfo } from 'node:os';
import { expect, test } from 'vitest';
import { parseHosts, parseSearchDomains, prefersIpv6, readResolverConfig } from './resolver-config.ts';

test('a hosts file assigns all addresses to each name, even if it contains other lines', () => {
  const text =
    '# by kubelet\n127.0.0.1\tlocalhost Vm\n::1 localhost ip6-localhost # both\n\n10.1 odd\n10.0.0.9\nfe80::1%lo0 zone';
  expect(parseHosts(text)).toEqual(
    new Map([
      [
        'localhost',
        [
          { address: '127.0.0.1', family: 4 },
          { address: '::1', family: 6 },
        ],
      ],
      ['vm', [{ address: '127.0.0.1', family: 4 }]],
      ['ip6-localhost', [{ address: '::1', family: 6 }]],
      ['zone', [{ address: 'fe80::1%lo0', family: 6 }]],
    ]),
  );
});

test.each([
  ['nameserver 10.96.0.10\nsearch shop.svc.cluster.local svc.cluster.local. \noptions ndots:5\n', 2],
  ['search .\n', 0],
  ['nameserver 10.96.0.10\n#search nowhere\n', 0],
  ['', 0],
])('of the search domains in %j, %i are used', (text, count) => {
  expect(parseSearchDomains(text)).toEqual(['shop.svc.cluster.local', 'svc.cluster.local'].slice(0, count));
});

test('the last line with search domains is used', () => {
  expect(parseSearchDomains('domain a.example\nsearch\tb.example c.example\n')).toEqual(['b.example', 'c.example']);
});

test.each([
  [['127.0.0.1', '::1'], false],
  [['10.0.0.1', 'fe80::1'], false],
  [['10.0.0.1', 'fd00:10::7'], false],
  [['10.0.0.1', '2001:db8::7'], true],
  [['3fff::1'], true],
])('with the addresses %j, IPv6 is preferred: %s', (addresses, first) => {
  expect(prefersIpv6({ eth0: addresses.map(address => ({ address }) as NetworkInterfaceInfo) })).toBe(first);
});

test('the files of this machine contain localhost', () => {
  expect(readResolverConfig().hosts.get('localhost')).toContainEqual({ address: '127.0.0.1', family: 4 });
});

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createNetworkPolicy, judgeEndpoint, parseNetwork, permitsAddress } from './network.ts';
import { REFUSED_IPV4 } from './network-ranges.ts';

const nothing = createNetworkPolicy({ allowedNetworks: [] });

describe('permitsAddress', () => {
  test.each([
    ['1.0.0.0', '0.255.255.255'],
    ['9.255.255.255', '10.0.0.0'],
    ['11.0.0.0', '10.255.255.255'],
    ['100.63.255.255', '100.64.0.0'],
    ['100.128.0.0', '100.127.255.255'],
    ['126.255.255.255', '127.0.0.0'],
    ['128.0.0.0', '127.255.255.255'],
    ['168.63.129.15', '168.63.129.16'],
    ['169.253.255.255', '169.254.0.0'],
    ['169.255.0.0', '169.254.255.255'],
    ['172.15.255.255', '172.16.0.0'],
    ['172.32.0.0', '172.31.255.255'],
    ['191.255.255.255', '192.0.0.0'],
    ['192.0.1.0', '192.0.2.0'],
    ['192.88.98.255', '192.88.99.0'],
    ['192.167.255.255', '192.168.0.0'],
    ['192.169.0.0', '192.168.255.255'],
    ['198.17.255.255', '198.18.0.0'],
    ['198.20.0.0', '198.19.255.255'],
    ['198.51.99.255', '198.51.100.0'],
    ['203.0.114.0', '203.0.113.255'],
    ['223.255.255.255', '224.0.0.0'],
    ['8.8.8.8', '255.255.255.255'],
    ['2000::', '1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:200::', '2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:db7:ffff::', '2001:db8::'],
    ['2001:db9::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['2001:ffff::', '2002::'],
    ['2003::', '2002:ffff::'],
    ['3ffe:ffff::', '3fff::'],
    ['3fff:1000::', '3fff:fff::'],
    ['3fff:ffff::', '4000::'],
    ['2606:4700::1111', 'fe80::1'],
  ])('permits %s, but not its neighbor %s', (permitted, refused) => {
    expect(permitsAddress(nothing, permitted)).toBe(true);
    expect(permitsAddress(nothing, refused)).toBe(false);
  });

  test.each(['', 'example.com', '127.1', '1.2.3.4.5', '[::1]', 'fe80::1%eth0', '2606:4700::1%eth0'])(
    'refuses %s, which is not an address',
    text => {
      expect(permitsAddress(nothing, text)).toBe(false);
    },
  );

  test('matches a bitwise comparison with the networks for any IPv4 address, including mapped addresses', () => {
    const networks = REFUSED_IPV4.map(({ cidr }) => {
      const [address = '', length = ''] = cidr.split('/');
      const value = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0);
      return { size: 2 ** (32 - Number(length)), value };
    });
    const near = fc.constantFrom(...networks.flatMap(({ value, size }) => [value - 1, value, value + size - 1]));
    const anyAddress = fc.oneof(
      fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      near.filter(v => v >= 0),
    );
    fc.assert(
      fc.property(anyAddress, value => {
        const address = [24, 16, 8, 0].map(shift => (value >>> shift) & 255).join('.');
        const refused = networks.some(network => value >= network.value && value < network.value + network.size);
        expect(permitsAddress(nothing, address)).toBe(!refused);
        expect(permitsAddress(nothing, `::ffff:${address}`)).toBe(false);
      }),
    );
  });
});

describe('allowed networks', () => {
  test('are removed from refused networks exactly', () => {
    const policy = createNetworkPolicy({ allowedNetworks: ['10.1.0.0/16', '127.0.0.1', 'fd12::/16', '8.8.8.0/24'] });
    for (const address of ['10.1.0.0', '10.1.255.255', '127.0.0.1', 'fd12::1', '8.8.8.8', '1.1.1.1']) {
      expect(permitsAddress(policy, address)).toBe(true);
    }
    for (const address of ['10.0.255.255', '10.2.0.0', '127.0.0.0', '127.0.0.2', 'fd11:ffff::', 'fd13::', '::1']) {
      expect(permitsAddress(policy, address)).toBe(false);
    }
  });

  test('can overlap and include everything', () => {
    const overlapping = createNetworkPolicy({ allowedNetworks: ['10.0.0.0/8', '10.1.0.0/16', '10.0.0.0/9'] });
    expect(permitsAddress(overlapping, '10.200.0.1')).toBe(true);
    expect(permitsAddress(overlapping, '11.0.0.1')).toBe(true);
    expect(permitsAddress(overlapping, '9.255.255.255')).toBe(true);
    const everything = createNetworkPolicy({ allowedNetworks: ['0.0.0.0/0', '::/0'] });
    for (const address of ['127.0.0.1', '255.255.255.255', '::', 'ffff::', '::ffff:127.0.0.1']) {
      expect(permitsAddress(everything, address)).toBe(true);
    }
  });

  test('for IPv6 do not permit the IPv4 addresses that they embed', () => {
    const policy = createNetworkPolicy({ allowedNetworks: ['::/0'] });
    expect(permitsAddress(policy, '::ffff:127.0.0.1')).toBe(false);
    expect(permitsAddress(policy, '127.0.0.1')).toBe(false);
  });

  test.each(['', 'x', '10.0.0.0/33', '10.0.0.0/-1', '10.0.0/8', '::/129', '10.0.0.0/8/8', '10.0.0.0/', 'fe80::%1/64'])(
    '%s is not a network',
    text => {
      expect(() => createNetworkPolicy({ allowedNetworks: [text] })).toThrow(RangeError);
    },
  );

  test('parseNetwork ignores host bits and reads dotted tails', () => {
    expect(parseNetwork('10.1.2.3/8')).toEqual({ family: 4, first: 0x0a000000n, last: 0x0affffffn });
    expect(parseNetwork('::1.2.3.4')).toEqual({ family: 6, first: 0x01020304n, last: 0x01020304n });
    expect(parseNetwork('1::')).toMatchObject({ first: 1n << 112n });
  });
});

describe('refused networks', () => {
  const policy = createNetworkPolicy({
    allowedNetworks: ['10.0.0.0/8', '::/0'],
    refusedNetworks: ['10.1.0.0/16', '8.8.8.8', '2600:1f00::/32', '64:ff9b::/96'],
  });

  test.each([
    ['8.8.8.7', '8.8.8.8'],
    ['8.8.8.9', '::ffff:8.8.8.8'],
    ['10.0.255.255', '10.1.0.0'],
    ['10.2.0.0', '10.1.255.255'],
    ['2600:1eff:ffff::', '2600:1f00::1'],
    ['2600:1f01::', '2600:1f00:ffff:ffff:ffff:ffff:ffff:ffff'],
    ['64:ff9b:0:0:0:1::', '64:ff9b::808:808'],
  ])('do not include %s, but include %s, even if it is public or allowed', (permitted, refused) => {
    expect(permitsAddress(policy, permitted)).toBe(true);
    expect(permitsAddress(policy, refused)).toBe(false);
  });

  test('do not permit http either', () => {
    expect(judgeEndpoint('http://10.2.0.1/', policy)).toBe('ok');
    expect(judgeEndpoint('http://10.1.0.1/', policy)).toBe('address_refused');
    expect(judgeEndpoint('https://10.1.0.1/', policy)).toBe('address_refused');
    expect(judgeEndpoint('https://8.8.8.8/', policy)).toBe('address_refused');
  });

  test('can include everything', () => {
    const closed = createNetworkPolicy({ allowedNetworks: ['10.0.0.0/8'], refusedNetworks: ['0.0.0.0/0', '::/0'] });
    for (const address of ['10.0.0.1', '1.1.1.1', '2606:4700::1111'])
      expect(permitsAddress(closed, address)).toBe(false);
  });
});

describe('allowed ports', () => {
  const policy = createNetworkPolicy({ allowedNetworks: ['10.0.0.0/8'], allowedPorts: [443, 8443] });
  test.each([
    ['https://partner.example/', 'ok'],
    ['https://partner.example:443/', 'ok'],
    ['https://partner.example:8443/', 'ok'],
    ['http://10.0.0.1:443/', 'ok'],
    ['https://partner.example:80/', 'port_refused'],
    ['https://partner.example:0443/', 'ok'],
    ['https://partner.example:22/', 'port_refused'],
    ['http://10.0.0.1/', 'port_refused'],
    ['https://partner.example:0/', 'port_refused'],
  ])('%s: %s', (url, expected) => {
    expect(judgeEndpoint(url, policy)).toBe(expected);
  });
});

describe('judgeEndpoint', () => {
  const policy = createNetworkPolicy({ allowedNetworks: ['10.0.0.0/8', '127.0.0.1'] });
  test.each([
    ['https://partner.example/hook?x=1', 'ok'],
    ['https://partner.example:8443/', 'ok'],
    ['https://8.8.8.8/', 'ok'],
    ['https://[2606:4700::1111]/', 'ok'],
    ['https://10.2.3.4/', 'ok'],
    ['http://10.2.3.4:8080/hook', 'ok'],
    ['http://127.1/', 'ok'],
    ['https://localhost/', 'ok'],
    ['http://partner.example/', 'plain_http_refused'],
    ['http://localhost/', 'plain_http_refused'],
    ['http://8.8.8.8/', 'plain_http_refused'],
    ['http://127.0.0.2/', 'address_refused'],
    ['https://169.254.169.254/latest/meta-data', 'address_refused'],
    ['https://[::1]/', 'address_refused'],
    ['https://[::ffff:10.0.0.1]/', 'address_refused'],
    ['https://user@partner.example/', 'userinfo_refused'],
    ['https://user:pass@partner.example/', 'userinfo_refused'],
    ['https://:pass@partner.example/', 'userinfo_refused'],
    ['ftp://partner.example/', 'scheme_refused'],
    ['javascript:alert(1)', 'invalid_url'],
    ['https://', 'invalid_url'],
    ['partner.example/hook', 'invalid_url'],
    ['/hook', 'invalid_url'],
    ['https://partner.example/a b', 'invalid_url'],
    ['https://partner.example/\n', 'invalid_url'],
    ['https://partner.example:99999/', 'invalid_url'],
  ])('%s: %s', (url, expected) => {
    expect(judgeEndpoint(url, policy)).toBe(expected);
  });
});

import type { IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createClientAddress, networkOf } from './client-address.ts';

const from = (remoteAddress: string | undefined, forwarded?: string) =>
  ({
    socket: { remoteAddress },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

const addressOf = createClientAddress(['10.0.0.0/8', '2001:db8:1::/48', '192.0.2.7']);
/** Returns the key of an address with a direct connection. */
const direct = (address: string) => addressOf(from(address));

describe('the address of a connection', () => {
  test('is used if it is not trusted, regardless of the header', () => {
    for (const forwarded of ['203.0.113.9', '10.1.1.1', '198.51.100.1, 203.0.113.9', 'nonsense']) {
      expect(addressOf(from('198.51.100.1', forwarded))).toBe(direct('198.51.100.1'));
    }
    expect(direct('198.51.100.1')).not.toBe(direct('198.51.100.2'));
  });

  test('is not trusted because of the same number as an address of the other family', () => {
    expect(addressOf(from('::a00:1', '203.0.113.9'))).toBe(direct('::a00:1'));
  });

  test('is used if it is trusted and there is no header', () => {
    expect(direct('10.0.0.1')).not.toBe(direct('10.0.0.2'));
    expect(addressOf(from('10.0.0.1', ''))).toBe(direct('10.0.0.1'));
  });

  test('is undefined after it was closed', () => {
    expect(addressOf(from(undefined, '203.0.113.9'))).toBe('');
  });

  test('is the IPv4 address if it is mapped to IPv6', () => {
    expect(direct('::ffff:198.51.100.1')).toBe(direct('198.51.100.1'));
    expect(direct('::ffff:c633:6401')).toBe(direct('198.51.100.1'));
    expect(addressOf(from('::ffff:10.0.0.1', '203.0.113.9'))).toBe(direct('203.0.113.9'));
  });

  test('is counted by /64 for IPv6', () => {
    expect(direct('2001:db8:9:1::1')).toBe(direct('2001:db8:9:1:ffff:ffff:ffff:ffff'));
    expect(direct('2001:db8:9:1::1')).not.toBe(direct('2001:db8:9:2::1'));
    expect(direct('fe80::1%eth0')).toBe(direct('fe80::2'));
  });
});

describe('the header of a trusted proxy', () => {
  test.each([
    ['203.0.113.9', '203.0.113.9'],
    ['1.1.1.1, 203.0.113.9', '203.0.113.9'],
    ['1.1.1.1,203.0.113.9 , 10.2.2.2,192.0.2.7', '203.0.113.9'],
    ['10.3.3.3, 10.2.2.2', '10.3.3.3'],
    ['1.1.1.1, 203.0.113.9:51234', '203.0.113.9'],
    ['1.1.1.1, [2001:db8:9:1::5]:51234', '2001:db8:9:1::1'],
    ['1.1.1.1, [2001:db8:9:1::5]', '2001:db8:9:1::1'],
    ['203.0.113.9, 2001:db8:1:5::9', '203.0.113.9'],
  ])('%s: %s', (forwarded, client) => {
    expect(addressOf(from('10.0.0.1', forwarded))).toBe(direct(client));
  });

  test.each([
    'nonsense',
    // Long zones would fill the memory.
    `fe80::1%${'x'.repeat(80)}`,
    '203.0.113.9, unknown',
    '203.0.113.9, ',
    ',',
    '203.0.113.9/32',
    '::/0',
    '300.1.1.1',
    'a'.repeat(9_000),
  ])('%s is not read any further, and the address of the proxy is used', forwarded => {
    expect(addressOf(from('10.0.0.1', forwarded))).toBe(direct('10.0.0.1'));
  });

  test('is read for 16 items', () => {
    const proxies = Array.from({ length: 100_000 }, (_, n) => `10.7.${(n >> 8) & 255}.${n & 255}`);
    expect(addressOf(from('10.0.0.1', `203.0.113.9, ${proxies.slice(0, 15).join(', ')}`))).toBe(direct('203.0.113.9'));
    expect(addressOf(from('10.0.0.1', `203.0.113.9, ${proxies.slice(0, 16).join(', ')}`))).toBe(direct('10.7.0.0'));
  });
});

test('is ignored without proxies', () => {
  const none = createClientAddress([]);
  expect(none(from('10.0.0.1', '203.0.113.9'))).toBe(direct('10.0.0.1'));
});

test.each([
  ['198.51.100.77', '198.51.100.0/24'],
  ['255.255.255.255', '255.255.255.0/24'],
  ['0.0.0.1', '0.0.0.0/24'],
  ['2001:db8:12:0:1::7', '2001:db8:12:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::ffff:198.51.100.77', '198.51.100.0/24'],
])('the network of %s is %s', (address, network) => {
  expect(networkOf(direct(address))).toBe(network);
});

test('a closed connection has no network', () => {
  expect(networkOf(addressOf(from(undefined)))).toBeUndefined();
});

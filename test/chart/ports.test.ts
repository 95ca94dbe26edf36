import { beforeAll, expect, test } from 'vitest';
import { type Helm, openHelm, renderChart, type ValueSet } from './support/helm.ts';
import { REQUIRED } from './support/value-sets.ts';

let helm: Helm;

beforeAll(async () => {
  helm = await openHelm();
});

interface Policy {
  readonly egress: readonly { readonly ports?: readonly { readonly protocol: string; readonly port: number }[] }[];
}

/** Returns the TCP ports that the NetworkPolicies open, with the roles that can connect to them. */
async function openPorts(values: ValueSet): Promise<Record<string, readonly string[]>> {
  const objects = await renderChart(helm, { ...REQUIRED, networkPolicy: { enabled: true }, ...values });
  const opened: Record<string, string[]> = {};
  for (const { kind, metadata, spec } of objects) {
    if (kind !== 'NetworkPolicy') continue;
    for (const { ports = [] } of (spec as Policy).egress) {
      expect(new Set(ports.map(each => JSON.stringify(each))).size).toBe(ports.length);
      for (const { protocol, port } of ports) {
        expect(Number.isInteger(port)).toBe(true);
        if (protocol !== 'TCP') continue;
        opened[port] ??= [];
        opened[port].push(metadata.name.replace('sluice-', ''));
      }
    }
  }
  return opened;
}

const EVERYONE = ['controller', 'dispatcher', 'facade', 'ingress', 'uninstall'];

test.each([
  ['a port', 'rediss://user:a:b%40c@redis.example.com:6380', { 6380: EVERYONE }],
  ['no port', 'redis://redis.example.com/', { 6379: EVERYONE }],
  ['several', 'redis://a:7000,redis://[fd00::6390]:7001/,redis://[fd00::6391]', { 7000: EVERYONE, 7001: EVERYONE }],
  ['Sentinels', 'redis+sentinel://s:p@a:26380,b:26381/main/1', { 26380: EVERYONE, 26381: EVERYONE, 6379: EVERYONE }],
  ['a Sentinel without a port', 'rediss+sentinel://a/main', { 26379: EVERYONE, 6379: EVERYONE }],
])('every role can connect to the ports in redis.url: %s', async (_, url, expected) => {
  const opened = await openPorts({ redis: { url } });
  expect(opened).toMatchObject(expected);
  expect(Object.keys(opened)).not.toEqual(expect.arrayContaining(['6390']));
});

test('a role can connect to the ports of the URLs that it uses', async () => {
  const opened = await openPorts({
    oidc: {
      audience: 'sluice',
      issuers: ['https://a.example.com:8443/realms/x', 'https://b.example.com', 'https://[::1]:8444/a:8445'],
    },
    smtp: { url: 'smtp://user:1@mail.example.com:2525/' },
    tracing: { endpoint: 'https://otel.example.com/a' },
    networkPolicy: { enabled: true, httpsPorts: [9443], smtpPorts: [26], collectorPorts: [4319] },
  });
  expect(opened).toEqual({
    53: [...EVERYONE],
    26: ['controller'],
    443: expect.arrayContaining(EVERYONE) as unknown,
    2525: ['controller'],
    4319: EVERYONE,
    6379: EVERYONE,
    6443: ['controller', 'facade', 'uninstall'],
    8443: ['facade'],
    8444: ['facade'],
    9443: ['facade'],
  });
});

test.each([
  ['smtp://mail.example.com', '587'],
  ['smtps://mail.example.com', '465'],
])('the controller can connect to the default port of %s', async (url, port) => {
  const opened = await openPorts({ smtp: { url }, networkPolicy: { enabled: true, smtpPorts: [26] } });
  expect(opened[port]).toEqual(['controller']);
});

test.each([
  ['http://collector:4317', '4317'],
  ['http://collector', '80'],
])('every role can connect to the collector at %s', async (endpoint, port) => {
  expect((await openPorts({ tracing: { endpoint } }))[port]).toEqual(EVERYONE);
});

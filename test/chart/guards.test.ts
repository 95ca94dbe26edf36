import { BlockList, isIPv6 } from 'node:net';
import { pino } from 'pino';
import { beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { checkRedis } from '../../src/redis/check.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { startRedis } from '../support/redis/server.ts';
import { type Helm, type Manifest, openHelm, renderChart, type ValueSet } from './support/helm.ts';
import { buildOverlays, REQUIRED_OVERLAY } from './support/kustomize.ts';
import { REQUIRED, VALUE_SETS } from './support/value-sets.ts';

let helm: Helm;

beforeAll(async () => {
  helm = await openHelm();
});

const render = (name: keyof typeof VALUE_SETS) => renderChart(helm, VALUE_SETS[name] ?? {});

interface Rule {
  readonly ports?: readonly { readonly port: number }[];
  readonly to?: readonly { readonly ipBlock: { readonly cidr: string; readonly except?: readonly string[] } }[];
}

describe('the NetworkPolicies', () => {
  /** The egress rules of each role. */
  async function egress(): Promise<Record<string, readonly Rule[]>> {
    const policies = (await render('production')).filter(({ kind }) => kind === 'NetworkPolicy');
    return Object.fromEntries(
      policies.map(({ metadata, spec }) => [
        metadata.labels?.['app.kubernetes.io/component'] ?? '',
        (spec as { egress: readonly Rule[] }).egress,
      ]),
    );
  }

  test('only allow the controller, the facade, and the uninstall Job to connect to the API server', async () => {
    const rules = await egress();
    const toPort = (port: number) =>
      Object.keys(rules).filter(role => rules[role]?.some(({ ports = [] }) => ports.some(each => each.port === port)));
    expect(toPort(6443).toSorted()).toEqual(['controller', 'facade', 'uninstall']);
    expect(toPort(6379).toSorted()).toEqual(['controller', 'dispatcher', 'facade', 'ingress', 'uninstall']);
  });

  test('are the same if the URLs are null instead of empty', async () => {
    const policies = async (absent: null | undefined) => {
      const values = {
        ...REQUIRED,
        redis: { url: absent, existingSecret: 'sluice-redis', passwordSecret: 'redis-password' },
        oidc: { issuers: absent },
        facade: { enabled: false },
        networkPolicy: { enabled: true },
      };
      return (await renderChart(helm, values)).filter(({ kind }) => kind === 'NetworkPolicy');
    };
    expect(await policies(null)).toEqual(await policies(undefined));
  });

  test('only allow the dispatcher to connect to any port, but not within the cluster', async () => {
    const rules = await egress();
    const open = Object.entries(rules).filter(([, own]) => own.some(({ ports }) => ports === undefined));
    expect(open.map(([role]) => role)).toEqual(['dispatcher']);
    const blocks = rules['dispatcher']?.flatMap(({ to = [] }) => to).map(({ ipBlock }) => ipBlock);
    expect(blocks?.find(({ cidr }) => cidr === '0.0.0.0/0')?.except).toContain('10.0.0.0/8');
    expect(blocks?.find(({ cidr }) => cidr === '::/0')?.except).toContain('fc00::/7');
    expect(blocks?.map(({ cidr }) => cidr)).toContain('10.8.0.0/16');
  });
});

/** Returns whether an address belongs to a network. */
function isInside(address: string, cidr: string): boolean {
  const [network = '', prefix] = cidr.split('/');
  const family = isIPv6(network) ? 'ipv6' : 'ipv4';
  const list = new BlockList();
  list.addSubnet(network, Number(prefix), family);
  return isIPv6(address) === isIPv6(network) && list.check(address, family);
}

describe('refusedNetworks', () => {
  /** Returns whether the dispatcher can connect to each of these addresses. */
  async function reachable(values: ValueSet, addresses: readonly string[]): Promise<Record<string, boolean>> {
    const objects = await renderChart(helm, { ...REQUIRED, networkPolicy: { enabled: true }, ...values });
    const policy = objects.find(
      ({ kind, metadata }) => kind === 'NetworkPolicy' && metadata.name === 'sluice-dispatcher',
    );
    const { egress = [] } = (policy?.['spec'] ?? {}) as { readonly egress?: readonly Rule[] };
    const rules = egress.filter(({ ports }) => ports === undefined);
    expect(egress.length).toBeGreaterThan(0);
    // Without `to`, a rule would allow all addresses.
    const blocks = rules.flatMap(({ to }) => (to ?? []).map(({ ipBlock }) => ipBlock));
    expect(rules.every(({ to = [] }) => to.length > 0)).toBe(true);
    for (const { cidr, except = [] } of blocks) {
      for (const network of except) expect(isInside(network.split('/')[0] ?? '', cidr), network).toBe(true);
    }
    const isOpen = (address: string) =>
      blocks.some(({ cidr, except = [] }) => isInside(address, cidr) && !except.some(each => isInside(address, each)));
    return Object.fromEntries(addresses.map(address => [address, isOpen(address)]));
  }

  test('are excluded from public and from allowed networks', async () => {
    const values = {
      allowedNetworks: ['10.8.0.0/16', '10.9.0.0/24', '192.0.2.0/23', 'fd00:8::/32', 'fd00:c000::/20'],
      refusedNetworks: [
        '10.8.1.0/24',
        '10.9.0.0/16',
        '192.0.2.0/23',
        '203.0.113.7/32',
        'FD00:8::1.2.3.4/128',
        '2001:DB8:64::/96',
        'fd00:D000::/20',
      ],
    };
    const expected = {
      '10.8.0.9': true,
      '10.8.1.9': false,
      '10.9.0.9': false,
      '192.0.2.9': false,
      '198.51.100.9': true,
      '203.0.113.6': true,
      '203.0.113.7': false,
      'fd00:8::102:303': true,
      'fd00:8::102:304': false,
      '2001:db8:64::1': false,
      '2001:db8:65::1': true,
      'fd00:c000::1': true,
      'fd00:d000::1': false,
    };
    expect(await reachable(values, Object.keys(expected))).toEqual(expected);
  });

  test('are excluded in every notation, along with the networks of the cluster', async () => {
    const values = VALUE_SETS['networks in any notation'] ?? {};
    const expected = {
      '10.1.0.9': true,
      '10.1.191.9': true,
      '10.1.192.9': false,
      '10.1.207.9': false,
      '10.1.208.9': true,
      '10.2.0.9': false,
      '10.6.5.4': false,
      '10.7.0.9': false,
      '169.254.0.9': false,
      '172.16.0.9': false,
      '192.0.2.71': true,
      '203.0.113.7': true,
      '203.0.113.11': false,
      'fd00:8::1': true,
      'fd00:9:1::9': true,
      'fd00:9:2::9': false,
      'fe80::9': false,
      '2001:db8:64::9': false,
      '2001:db8:64::8000:0': true,
    };
    expect(await reachable(values, Object.keys(expected))).toEqual(expected);
  });

  test.each([['0.0.0.0/0'], ['10.8.0.0/16']])('do not need a rule for all of %s', async network => {
    const networkPolicy = { enabled: true, clusterNetworks: ['0.0.0.0/0'] };
    const expected = { '198.51.100.9': false, '10.8.0.9': network !== '0.0.0.0/0', '2001:db8:65::1': true };
    const allowedNetworks = network === '0.0.0.0/0' ? [] : [network];
    expect(await reachable({ networkPolicy, allowedNetworks }, Object.keys(expected))).toEqual(expected);
  });

  test('can be null, as well as the allowed networks', async () => {
    const expected = { '10.8.0.9': false, '198.51.100.9': true };
    const values = { allowedNetworks: null, refusedNetworks: null };
    expect(await reachable(values, Object.keys(expected))).toEqual(expected);
  });

  test('can include all addresses, even if other networks are allowed', async () => {
    const values = { allowedNetworks: ['10.8.0.0/16'], refusedNetworks: ['0.0.0.0/0', '::/0'] };
    const expected = { '10.8.0.9': false, '198.51.100.9': false, '2001:db8:65::1': false };
    expect(await reachable(values, Object.keys(expected))).toEqual(expected);
  });
});

test('users with the view role cannot read the addresses in Integrations', async () => {
  const label = 'rbac.authorization.k8s.io/aggregate-to-view';
  const viewers = (objects: readonly Manifest[]) =>
    objects.filter(({ metadata }) => metadata.labels?.[label] === 'true');
  const added = viewers(await render('rights for everybody'));
  expect(added.map(({ metadata }) => metadata.name)).toEqual(['events-tenant-view']);
  expect(JSON.stringify(added[0]?.['rules'])).toContain('subscriptions');
  expect(JSON.stringify(added[0]?.['rules'])).not.toMatch(/integrations|secrets/);
  expect(viewers(await render('minimal'))).toEqual([]);
});

interface StatefulSet extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly initContainers: readonly object[];
        readonly containers: readonly { readonly image: string; readonly args: readonly string[] }[];
      };
    };
  };
}

test('the evaluation Redis uses the image of Sluice by default', async () => {
  const imageOf = (objects: readonly Manifest[]) =>
    (objects.filter(({ kind }) => kind === 'StatefulSet') as StatefulSet[])[0]?.spec.template.spec.containers[0]?.image;
  expect(imageOf(await render('evaluation'))).toBe(`registry.example.com/sluice-redis:${packageJson.version}`);
  expect(imageOf(await render('all in one'))).toBe('registry.example.com/redis:8.2');
  const ofKustomize = await buildOverlays({ resources: ['evaluation'], ...REQUIRED_OVERLAY });
  expect(imageOf(ofKustomize)).toBe(imageOf(await render('evaluation')));
});

test('the evaluation Redis has the settings required by the roles', async () => {
  const objects = await render('evaluation');
  const [set] = objects.filter(({ kind }) => kind === 'StatefulSet') as StatefulSet[];
  const args = set?.spec.template.spec.containers[0]?.args ?? [];
  expect(set?.spec.template.spec.initContainers).toMatchObject([
    { args: ['repair-redis', '/data'], volumeMounts: [{ name: 'data', mountPath: '/data' }] },
  ]);
  const folder = args.indexOf('--dir');
  expect(folder).toBeGreaterThanOrEqual(0);
  // All other arguments replace the arguments of the test server.
  const server = await startRedis({ appendonly: false, extra: args.toSpliced(folder, 2) });
  const lines: string[] = [];
  const log = pino({ level: 'warn' }, { write: (line: string) => lines.push(line) });
  const redis = await connectRedis(server.url, log);
  try {
    await checkRedis(redis, log);
    expect(lines).toEqual([]);
    expect(await server.command('CONFIG', 'GET', 'appendfsync')).toEqual(['appendfsync', 'always']);
    expect(await server.command('CONFIG', 'GET', 'maxmemory')).toEqual(['maxmemory', String(400 * 1_048_576)]);
  } finally {
    await redis.close();
    await server.stop();
  }
});

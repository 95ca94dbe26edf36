import { pino } from 'pino';
import { beforeAll, describe, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { checkRedis } from '../../src/redis/check.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { startRedis } from '../support/redis/server.ts';
import { type Helm, type Manifest, openHelm, renderChart } from './support/helm.ts';
import { buildOverlays, REQUIRED_OVERLAY } from './support/kustomize.ts';
import { VALUE_SETS } from './support/value-sets.ts';

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
  /** Rules for what a role connects to, by role. */
  async function egress(): Promise<Record<string, readonly Rule[]>> {
    const policies = (await render('production')).filter(({ kind }) => kind === 'NetworkPolicy');
    return Object.fromEntries(
      policies.map(({ metadata, spec }) => [
        metadata.labels?.['app.kubernetes.io/component'] ?? '',
        (spec as { egress: readonly Rule[] }).egress,
      ]),
    );
  }

  test('let only the controller, the facade and the uninstall Job connect to the API server', async () => {
    const rules = await egress();
    const toPort = (port: number) =>
      Object.keys(rules).filter(role => rules[role]?.some(({ ports = [] }) => ports.some(each => each.port === port)));
    expect(toPort(6443).toSorted()).toEqual(['controller', 'facade', 'uninstall']);
    expect(toPort(6379).toSorted()).toEqual(['controller', 'dispatcher', 'facade', 'ingress', 'uninstall']);
  });

  test('let only the dispatcher connect to any port, and not inside of the cluster', async () => {
    const rules = await egress();
    const open = Object.entries(rules).filter(([, own]) => own.some(({ ports }) => ports === undefined));
    expect(open.map(([role]) => role)).toEqual(['dispatcher']);
    const blocks = rules['dispatcher']?.flatMap(({ to = [] }) => to).map(({ ipBlock }) => ipBlock);
    expect(blocks?.find(({ cidr }) => cidr === '0.0.0.0/0')?.except).toContain('10.0.0.0/8');
    expect(blocks?.find(({ cidr }) => cidr === '::/0')?.except).toContain('fc00::/7');
    expect(blocks?.map(({ cidr }) => cidr)).toContain('10.8.0.0/16');
  });
});

test('whoever may view a namespace does not see the addresses in Integrations', async () => {
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
      readonly spec: { readonly containers: readonly { readonly image: string; readonly args: readonly string[] }[] };
    };
  };
}

test('Redis for evaluation has the image that belongs to Sluice, unless another one is set', async () => {
  const imageOf = (objects: readonly Manifest[]) =>
    (objects.filter(({ kind }) => kind === 'StatefulSet') as StatefulSet[])[0]?.spec.template.spec.containers[0]?.image;
  expect(imageOf(await render('evaluation'))).toBe(`registry.example.com/sluice-redis:${packageJson.version}`);
  expect(imageOf(await render('all in one'))).toBe('registry.example.com/redis:8.2');
  const ofKustomize = await buildOverlays({ resources: ['evaluation'], ...REQUIRED_OVERLAY });
  expect(imageOf(ofKustomize)).toBe(imageOf(await render('evaluation')));
});

test('Redis for evaluation has the settings that the roles ask for', async () => {
  const objects = await render('evaluation');
  const [set] = objects.filter(({ kind }) => kind === 'StatefulSet') as StatefulSet[];
  const args = set?.spec.template.spec.containers[0]?.args ?? [];
  const folder = args.indexOf('--dir');
  expect(folder).toBeGreaterThanOrEqual(0);
  // All other arguments replace those of the server for tests.
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

import { pino } from 'pino';
import { beforeAll, describe, expect, test } from 'vitest';
import { checkRedis } from '../../src/redis/check.ts';
import { connectRedis } from '../../src/redis/client.ts';
import { startRedis } from '../support/redis/server.ts';
import { type Helm, type Manifest, openHelm, renderChart } from './support/helm.ts';
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

  test('let only the controller and the facade connect to the API server', async () => {
    const rules = await egress();
    const toPort = (port: number) =>
      Object.keys(rules).filter(role => rules[role]?.some(({ ports = [] }) => ports.some(each => each.port === port)));
    expect(toPort(6443)).toEqual(expect.arrayContaining(['controller', 'facade']));
    expect(toPort(6443)).toHaveLength(2);
    expect(toPort(6379)).toHaveLength(5);
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
    readonly template: { readonly spec: { readonly containers: readonly { readonly args: readonly string[] }[] } };
  };
}

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

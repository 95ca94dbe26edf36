import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { type Config, readConfig } from '../../src/config/config.ts';
import { createAuthority } from '../support/certificates.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Helm, type Manifest, openHelm, renderChart } from './support/helm.ts';
import { REQUIRED, VALUE_SETS } from './support/value-sets.ts';

let helm: Helm;
/** The content of mounted files, by the variable containing the path. */
let files: Readonly<Record<string, string>>;

beforeAll(async () => {
  helm = await openHelm();
  const folder = (await temporaryFolder('mounted')).path;
  const rootKey = join(folder, 'root.key');
  const password = join(folder, 'password');
  await writeFile(rootKey, randomBytes(32));
  await writeFile(password, 'secret');
  const authority = await createAuthority(folder);
  const client = await authority.issue('client');
  files = {
    SLUICE_ROOT_KEY_FILE: rootKey,
    SLUICE_REDIS_PASSWORD_FILE: password,
    SLUICE_REDIS_SENTINEL_PASSWORD_FILE: password,
    SLUICE_REDIS_CA_FILE: authority.ca,
    SLUICE_REDIS_CERT_FILE: client.cert,
    SLUICE_REDIS_KEY_FILE: client.key,
    SLUICE_INGRESS_CERT_FILE: client.cert,
    SLUICE_INGRESS_KEY_FILE: client.key,
    SLUICE_FACADE_CERT_FILE: client.cert,
    SLUICE_FACADE_KEY_FILE: client.key,
  };
});

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: {
    readonly secretKeyRef?: { readonly name: string; readonly optional?: boolean };
    readonly fieldRef?: { readonly fieldPath: string };
  };
}

interface Deployment extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly { readonly args: readonly string[]; readonly env: readonly Variable[] }[];
      };
    };
  };
}

/** The user's Secrets, which the chart only references. */
const GIVEN: Readonly<Record<string, string>> = {
  'sluice-redis': 'redis://redis.example.com:6379',
  mail: 'smtps://user:password@mail.example.com',
};

/** Returns the environment that the kubelet would provide to a container. */
function environmentOf({ spec }: Deployment, objects: readonly Manifest[]): Record<string, string> {
  const [container] = spec.template.spec.containers;
  const config = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-config'));
  const secret = (name: string): string | undefined => {
    const made = objects.find(({ kind, metadata }) => kind === 'Secret' && metadata.name === name);
    return (made?.['stringData'] as { url: string } | undefined)?.url ?? GIVEN[name];
  };
  const variables = (container?.env ?? []).flatMap(({ name, value, valueFrom }) => {
    if (files[name] !== undefined) return [[name, files[name]] as const];
    if (valueFrom?.fieldRef) return [[name, 'sluice-system'] as const];
    if (valueFrom?.secretKeyRef === undefined) return [[name, value ?? ''] as const];
    const { name: from, optional = false } = valueFrom.secretKeyRef;
    const found = secret(from);
    if (found === undefined && !optional) throw new Error(`the Secret ${from} is missing`);
    return found === undefined ? [] : [[name, found] as const];
  });
  return { ...(config?.['data'] as Record<string, string>), ...Object.fromEntries(variables) };
}

async function configsOf(values: (typeof VALUE_SETS)[string]): Promise<Record<string, Config>> {
  const objects = await renderChart(helm, values);
  const deployments = objects.filter(({ kind }) => kind === 'Deployment') as Deployment[];
  expect(deployments.length).toBeGreaterThan(0);
  return Object.fromEntries(
    deployments.map(deployment => {
      const args = deployment.spec.template.spec.containers[0]?.args ?? [];
      return [args.join(), readConfig(args, environmentOf(deployment, objects))];
    }),
  );
}

test.each(Object.entries(VALUE_SETS))(
  'every role can start with the environment of its pods: %s',
  async (_, values) => {
    const configs = await configsOf(values);
    for (const config of Object.values(configs)) expect(JSON.stringify(config.redis)).not.toContain('127.0.0.1');
  },
);

test('each role connects with its own Redis user, and its pods only get that password', async () => {
  const values = VALUE_SETS['a Redis user for each role'] ?? {};
  const configs = await configsOf(values);
  const users = Object.entries(configs).map(([role, { redis }]) => [role, redis.username] as const);
  expect(Object.fromEntries(users)).toEqual({
    controller: 'sluice-controller',
    dispatcher: 'sluice-dispatcher',
    facade: 'sluice-facade',
    ingress: 'sluice-ingress',
  });
  const text = JSON.stringify(await renderChart(helm, values));
  const keys = [...text.matchAll(/"secretName":"redis-users","items":\[(.*?)\]/g)].map(([, items = '']) => items);
  const password = (key: string) => JSON.stringify({ key, path: 'password' });
  expect(keys.toSorted()).toEqual(['controller', 'dispatcher', 'facade', 'ingress', 'uninstall'].map(password));
});

test('the roles read the values', async () => {
  const { controller, facade, ingress, dispatcher } = await configsOf(VALUE_SETS['production'] ?? {});
  expect(facade?.oidc).toMatchObject({
    issuers: ['https://a.example.com', 'https://b.example.com'],
    algorithms: ['ES256'],
  });
  expect(controller?.mail).toMatchObject({ acceptUrl: 'https://app.example.com/i', plainText: false });
  expect(controller?.queueMaxBytes).toBe(1_073_741_824_000);
  expect(controller?.workspaceQuota).toEqual({
    'count/activations.sluice.dev': '10000',
    'count/packages.sluice.dev': '100',
  });
  for (const role of [controller, facade, ingress]) {
    expect(role?.limits.byPlan.Free.streams).toBe(5);
    expect(role?.limits.byPlan.Free).not.toHaveProperty('eventsPerSecond');
    expect(role?.limits.byPlan.Metered.storedBytes).toBe(1_099_511_627_776);
    expect(role?.limits.ceilings).toEqual({ streams: 4_000 });
    expect(role?.invitedLimits).toEqual({ streams: 0 });
  }
  expect(ingress).toMatchObject({ shutdownDelayMs: 20_000, rootKeys: undefined, mail: undefined });
  expect(ingress?.tracing).toMatchObject({ sampler: { parentBased: true, ratio: 0.05 } });
  const endpoints = {
    allowedNetworks: ['10.8.0.0/16'],
    refusedNetworks: ['203.0.113.7/32', '2001:db8:64::/96', '10.8.3.0/24'],
    allowedPorts: [443, 8443],
  };
  for (const role of [controller, dispatcher]) expect(role?.endpoints).toEqual(endpoints);
  expect(dispatcher?.endpointConsentOrigin).toBe('events.example.com');
  for (const role of [facade, ingress]) expect(role?.trustedProxies).toEqual(['10.9.0.0/16', 'fd00::/8']);
  expect(ingress?.ingressRates).toEqual({ perAddress: 900, perKey: 500, perWorkspace: 800 });
  for (const role of [controller, facade, ingress, dispatcher]) expect(role?.instance).toBe('blue');
});

test('the roles read values that are 0', async () => {
  const limits = { ingressPerAddress: 0, ingressPerKey: 0, ingressPerWorkspace: 0 };
  const oidc = { ...REQUIRED.oidc, clockToleranceSeconds: 0, maxTokenAgeSeconds: 0 };
  const configs = await configsOf({ ...REQUIRED, oidc, limits, shutdownDelaySeconds: 0 });
  const { facade, ingress } = configs;
  expect(facade?.oidc?.clockToleranceSeconds).toBe(0);
  expect(facade?.oidc).not.toHaveProperty('maxAgeSeconds');
  expect(ingress).toMatchObject({ ingressRates: { perAddress: 0, perKey: 0 }, shutdownDelayMs: 0 });
});

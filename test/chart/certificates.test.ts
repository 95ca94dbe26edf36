import { beforeAll, expect, test } from 'vitest';
import { CHART, type Helm, type Manifest, openHelm, outputOf, parseObjects, renderChart } from './support/helm.ts';
import { VALUE_SETS } from './support/value-sets.ts';

let helm: Helm;

beforeAll(async () => {
  helm = await openHelm();
});

interface Workload extends Manifest {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly containers: readonly [
          {
            readonly env: readonly { readonly name: string; readonly value?: string }[];
            readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
          },
        ];
        readonly volumes: readonly { readonly name: string; readonly [source: string]: unknown }[];
      };
    };
  };
}

/** Returns the file for each variable of a pod, as the volume source and the name within the volume. */
function filesOf(
  objects: readonly Manifest[],
  name: string,
  ofKind = 'Deployment',
): Record<string, readonly [source: object, file: string]> {
  const workload = objects.find(({ kind, metadata }) => kind === ofKind && metadata.name === name) as Workload;
  const { containers, volumes } = workload.spec.template.spec;
  const [{ env, volumeMounts }] = containers;
  return Object.fromEntries(
    env.flatMap(variable => {
      const mount = volumeMounts.find(({ mountPath }) => variable.value?.startsWith(`${mountPath}/`));
      if (mount === undefined) return [];
      const { name: _, ...source } = volumes.find(volume => volume.name === mount.name) ?? { name: '' };
      return [[variable.name, [source, variable.value?.slice(mount.mountPath.length + 1) ?? '']]];
    }),
  );
}

test.each([
  ['certificates', 'sluice-ingress', 'sluice-facade'],
  ['all in one', 'sluice-all', 'sluice-all'],
])(
  'a role that serves TLS mounts its Secret, and each role mounts the certificate authorities: %s',
  async (set, ingress, facade) => {
    const objects = await renderChart(helm, VALUE_SETS[set] ?? {});
    const secret = (secretName: string) => ({ secret: { secretName } });
    expect(filesOf(objects, ingress)).toMatchObject({
      SLUICE_INGRESS_CERT_FILE: [secret('events-tls'), 'tls.crt'],
      SLUICE_INGRESS_KEY_FILE: [secret('events-tls'), 'tls.key'],
    });
    expect(filesOf(objects, facade)).toMatchObject({
      SLUICE_FACADE_CERT_FILE: [secret('api-tls'), 'tls.crt'],
      SLUICE_FACADE_KEY_FILE: [secret('api-tls'), 'tls.key'],
    });
    const deployments = objects.filter(({ kind }) => kind === 'Deployment');
    for (const { metadata } of deployments) {
      const { NODE_EXTRA_CA_CERTS: trusted } = filesOf(objects, metadata.name);
      expect(trusted).toEqual([
        { configMap: { name: 'authorities', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        'ca.crt',
      ]);
    }
    // Redis and its certificate authorities may have been removed before the Job that removes the finalizers.
    expect(filesOf(objects, 'sluice-uninstall', 'Job').NODE_EXTRA_CA_CERTS).toEqual([
      { configMap: { name: 'authorities', items: [{ key: 'ca.crt', path: 'ca.crt' }], optional: true } },
      'ca.crt',
    ]);
    const protocols = objects
      .filter(({ kind }) => kind === 'Service')
      .map(({ spec }) => (spec as { ports: { appProtocol?: string }[] }).ports[0]?.appProtocol);
    expect(protocols.filter(protocol => protocol === 'https')).toHaveLength(2);
  },
);

test('helm test trusts the certificate authorities, one of which may have issued the certificate of ingress', async () => {
  const args = ['template', 'sluice', CHART, '--show-only=templates/tests/delivery.yaml'];
  const objects = parseObjects(outputOf(await helm(args, { values: VALUE_SETS['certificates'] ?? {} })));
  type Pod = Manifest & { readonly spec: Workload['spec']['template']['spec'] };
  const [pod] = objects.filter(({ kind }) => kind === 'Pod') as [Pod];
  const { containers, volumes } = pod.spec;
  const [{ env, volumeMounts }] = containers;
  expect(env).toEqual([{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/sluice/trust/ca.crt' }]);
  expect(volumeMounts).toContainEqual({ name: 'trust', mountPath: '/etc/sluice/trust', readOnly: true });
  expect(volumes).toContainEqual({
    name: 'trust',
    configMap: { name: 'authorities', items: [{ key: 'ca.crt', path: 'ca.crt' }] },
  });
});

test('a role does not mount the certificate of another role', async () => {
  const objects = await renderChart(helm, VALUE_SETS['certificates'] ?? {});
  for (const name of ['controller', 'facade', 'dispatcher']) {
    expect(JSON.stringify(filesOf(objects, `sluice-${name}`))).not.toContain('events-tls');
  }
});

test('requests the certificates that have an issuer from cert-manager', async () => {
  const place = { release: 'blue', namespace: 'events', apis: ['cert-manager.io/v1'] };
  const objects = await renderChart(helm, VALUE_SETS['certificates'] ?? {}, place);
  const certificates = objects.filter(({ kind }) => kind === 'Certificate');
  const issuerRef = { name: 'internal', kind: 'ClusterIssuer' };
  expect(certificates.map(({ spec }) => spec)).toMatchObject([
    {
      secretName: 'api-tls',
      dnsNames: ['blue-sluice-facade', 'blue-sluice-facade.events', 'blue-sluice-facade.events.svc', 'api.example.com'],
      issuerRef,
    },
    { secretName: 'events-tls', issuerRef },
    { secretName: 'redis-client', commonName: 'blue-sluice', usages: ['digital signature', 'client auth'], issuerRef },
  ]);
});

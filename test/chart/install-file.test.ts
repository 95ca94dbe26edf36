import { beforeAll, describe, expect, inject, test } from 'vitest';
import { renderInstallFile } from '../../tools/generate/kustomize/install-file.ts';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { type Kubectl, kubectlFor } from '../support/kubernetes/kubectl.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { type Manifest, outputOf, parseObjects } from './support/helm.ts';
import { buildOverlays } from './support/kustomize.ts';

const REGISTRY = 'registry.example.com:5000/team';

/** The content of an overlay with the images of the registry. */
const IMAGES = { images: ['sluice', 'sluice-redis'].map(name => ({ name, newName: `${REGISTRY}/${name}` })) };

const nameOf = ({ kind, metadata }: Manifest) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;
const byName = (objects: readonly Manifest[]) => Object.fromEntries(objects.map(object => [nameOf(object), object]));

let kubectl: Kubectl;

beforeAll(async () => {
  const [{ kubectl: binary }, folder] = await Promise.all([ensureBinaries(['kubectl']), temporaryFolder('file')]);
  kubectl = kubectlFor({ binary, kubeconfig: inject('kubeconfig'), cache: folder.path });
});

describe.each([
  ['install.yaml', { evaluation: false }, { resources: ['default'] }],
  [
    'install-evaluation.yaml',
    { evaluation: true },
    // Without an identity provider, the facade cannot start.
    { resources: ['evaluation'], replicas: [{ name: 'sluice-facade', count: 0 }] },
  ],
] as const)('%s', (_, options, overlay) => {
  test('has the same objects as the folder for kustomize', async () => {
    const objects = parseObjects(renderInstallFile(REGISTRY, options));
    expect(byName(objects)).toEqual(byName(await buildOverlays({ ...overlay, ...IMAGES })));
    expect(objects.length).toBeGreaterThan(40);
  });

  test('is accepted by the API server as one file', async () => {
    const file = renderInstallFile(REGISTRY, options);
    const [namespace] = parseObjects(file);
    expect(namespace?.kind).toBe('Namespace');
    // A dry run does not create a namespace for the other objects.
    outputOf(await kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(namespace) }));
    const trying = ['--server-side', '--force-conflicts', '--dry-run=server', '--validate=strict', '-f', '-'];
    const { code, stderr } = await kubectl(['apply', ...trying], { stdin: file });
    expect([code, stderr]).toEqual([0, '']);
  });
});

test.each(['', 'https://registry.example.com', 'registry.example.com/', 'a b', "a'b"])(
  'refuses %j as a registry',
  registry => {
    expect(() => renderInstallFile(registry, { evaluation: false })).toThrow(/is not a registry: use its host/);
  },
);

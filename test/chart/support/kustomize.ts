import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { stringify } from 'yaml';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { kubectlFor } from '../../support/kubernetes/kubectl.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { type Manifest, outputOf, parseObjects, ROOT } from './helm.ts';
import { REQUIRED } from './value-sets.ts';

/** Returns an overlay that corresponds to the values in REQUIRED. */
export const REQUIRED_OVERLAY = {
  images: ['sluice', 'sluice-redis'].map(name => ({ name, newName: `${REQUIRED.image.registry}/${name}` })),
  configMapGenerator: [
    {
      name: 'sluice-config',
      namespace: 'sluice-system',
      behavior: 'merge',
      options: { disableNameSuffixHash: true },
      literals: [
        `SLUICE_OIDC_ISSUERS=${REQUIRED.oidc.issuers.join(',')}`,
        `SLUICE_OIDC_AUDIENCE=${REQUIRED.oidc.audience}`,
      ],
    },
  ],
};

/**
 * Builds overlays on top of each other and returns the objects of the last overlay. `resources` and `components` are
 * folders in config.
 */
export async function buildOverlays(
  ...overlays: readonly {
    readonly resources?: readonly string[];
    readonly components?: readonly string[];
    readonly [field: string]: unknown;
  }[]
): Promise<Manifest[]> {
  const [{ kubectl: binary }, folder] = await Promise.all([ensureBinaries(['kubectl']), temporaryFolder('overlay')]);
  const paths = overlays.map((_, i) => join(folder.path, `overlay-${i}`));
  for (const [i, { resources = [], components = [], ...rest }] of overlays.entries()) {
    const path = paths[i] as string;
    const inConfig = (name: string) => relative(path, join(ROOT, 'config', name));
    await mkdir(path);
    const kustomization = {
      resources: [...(i === 0 ? [] : [`../overlay-${i - 1}`]), ...resources.map(inConfig)],
      components: components.map(inConfig),
      ...rest,
    };
    await writeFile(join(path, 'kustomization.yaml'), stringify(kustomization));
  }
  const kubectl = kubectlFor({ binary, kubeconfig: '/nowhere', cache: folder.path });
  return parseObjects(outputOf(await kubectl(['kustomize', paths.at(-1) ?? ''])));
}

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Layer, packProgram, packSystem } from './layers.ts';
import { type PlatformImage, writeLayout } from './layout.ts';
import { fileNameOf, PLATFORMS, type Platform } from './platforms.ts';
import { type Release, readRelease } from './release.ts';
import { writeRootFileSystems } from './root-file-system.ts';
import { renderSbom } from './sbom.ts';

/** An image that was built. */
export interface Built {
  readonly release: Release;
  /** Digest of the index with all platforms, `sha256:<hex>`. */
  readonly digest: string;
  readonly images: readonly BuiltImage[];
}

/** The image of one platform. */
export interface BuiltImage {
  readonly platform: Platform;
  /** Digest of the manifest. */
  readonly digest: string;
  readonly layers: readonly Pick<Layer, 'name' | 'size'>[];
}

/**
 * Builds the image for all platforms from the files of a project.
 *
 * @param output folder for the OCI layout. The files of each platform go to `<output>-root/linux-<architecture>`, and
 *   its SBOM to `<output>-sbom/linux-<architecture>.cdx.json`.
 */
export async function buildImage(project: string, output: string): Promise<Built> {
  const release = await readRelease(project);
  const { roots, packages } = await writeRootFileSystems(project, PLATFORMS, `${output}-root`);
  const sboms = `${output}-sbom`;
  await rm(sboms, { recursive: true, force: true });
  await mkdir(sboms, { recursive: true });
  const work = await mkdtemp(join(tmpdir(), 'sluice-layers-'));
  try {
    const program = await packProgram(roots[0]?.folder ?? '', work);
    const parts: PlatformImage[] = [];
    for (const { platform, folder } of roots) {
      const sbom = renderSbom(platform, packages, release);
      await writeFile(join(sboms, `${fileNameOf(platform)}.cdx.json`), sbom);
      parts.push({ platform, layers: [await packSystem(folder), ...program], sbom });
    }
    const { digest, manifests } = await writeLayout(output, parts, release);
    const images = parts.map(({ platform, layers }) => ({ platform, layers, digest: manifests.get(platform) ?? '' }));
    return { release, digest, images };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

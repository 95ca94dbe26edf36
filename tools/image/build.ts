import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Layer, packProgram, packSystem } from './layers.ts';
import { writeLayout } from './layout.ts';
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
  readonly layers: readonly Layer[];
  /** Folder with the image's files. */
  readonly root: string;
  /** Path of the CycloneDX document. */
  readonly sbom: string;
}

/**
 * Builds the image for all platforms from the files of a project.
 *
 * @param output folder for the OCI layout; the folders `<output>-root` and `<output>-sbom` will be written beside it
 */
export async function buildImage(project: string, output: string): Promise<Built> {
  const release = await readRelease(project);
  const { roots, packages } = await writeRootFileSystems(project, PLATFORMS, `${output}-root`);
  const sboms = `${output}-sbom`;
  await rm(sboms, { recursive: true, force: true });
  await mkdir(sboms, { recursive: true });
  const program = await packProgram(roots[0]?.folder ?? '');
  const images: Omit<BuiltImage, 'digest'>[] = [];
  const parts: Parameters<typeof writeLayout>[1][number][] = [];
  for (const { platform, folder } of roots) {
    const text = renderSbom(platform, packages, release);
    const sbom = join(sboms, `${fileNameOf(platform)}.cdx.json`);
    await writeFile(sbom, text);
    const layers = [await packSystem(folder), ...program];
    images.push({ platform, layers, root: folder, sbom });
    parts.push({ platform, layers, sbom: text });
  }
  const { digest, manifests } = await writeLayout(output, parts, release);
  return {
    release,
    digest,
    images: images.map(image => ({ ...image, digest: manifests.get(image.platform) ?? '' })),
  };
}

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RUN_REDIS, RUN_SLUICE, type Run } from './config.ts';
import { type Layer, packProgram, packSystem } from './layers.ts';
import { type PlatformImage, writeLayout } from './layout.ts';
import { fileNameOf, PLATFORMS, type Platform } from './platforms.ts';
import { REDIS_SYSTEM } from './redis.ts';
import { type Release, readRelease, releaseOfRedis } from './release.ts';
import { writeRoots, writeSluiceRoots } from './root-file-system.ts';
import { describeDebian, describeNode, describeNpm, renderSbom } from './sbom.ts';
import { NODE_SYSTEM } from './system.ts';

/** A built image. */
export interface Built {
  readonly release: Release;
  /** The digest of the index with all platforms, `sha256:<hex>`. */
  readonly digest: string;
  readonly images: readonly BuiltImage[];
}

/** The image for a single platform. */
export interface BuiltImage {
  readonly platform: Platform;
  /** The digest of the manifest. */
  readonly digest: string;
  readonly layers: readonly Pick<Layer, 'name' | 'size'>[];
}

/**
 * Builds the Sluice image for all platforms from the project files.
 *
 * @param output folder for the OCI layout. The files of each platform are written to
 * `<output>-root/linux-<architecture>`, and
 *   its SBOM to `<output>-sbom/linux-<architecture>.cdx.json`.
 */
export async function buildImage(project: string, output: string): Promise<Built> {
  const release = await readRelease(project);
  const { roots, packages } = await writeSluiceRoots(project, PLATFORMS, `${output}-root`);
  const npm = packages.map(describeNpm);
  return withWorkFolder(async work => {
    const program = await packProgram(roots[0]?.folder ?? '', work);
    const images: PlatformImage[] = [];
    for (const { platform, folder } of roots) {
      const components = [describeNode(platform), ...describeDebian(platform, NODE_SYSTEM.packages), ...npm];
      const sbom = renderSbom(platform, components, release);
      images.push({ platform, layers: [await packSystem(folder), program], sbom });
    }
    return writeImages(output, images, release, RUN_SLUICE);
  });
}

/**
 * Builds the image of the evaluation Redis, with the version of the project.
 * @param output as in `buildImage`
 */
export async function buildRedisImage(project: string, output: string): Promise<Built> {
  const release = releaseOfRedis(await readRelease(project));
  const roots = await writeRoots(REDIS_SYSTEM, PLATFORMS, `${output}-root`);
  const images: PlatformImage[] = [];
  for (const { platform, folder } of roots) {
    const sbom = renderSbom(platform, describeDebian(platform, REDIS_SYSTEM.packages), release);
    images.push({ platform, layers: [await packSystem(folder)], sbom });
  }
  return writeImages(output, images, release, RUN_REDIS);
}

async function writeImages(
  output: string,
  images: readonly PlatformImage[],
  release: Release,
  run: Run,
): Promise<Built> {
  const sboms = `${output}-sbom`;
  await rm(sboms, { recursive: true, force: true });
  await mkdir(sboms, { recursive: true });
  for (const { platform, sbom } of images) await writeFile(join(sboms, `${fileNameOf(platform)}.cdx.json`), sbom);
  const { digest, manifests } = await writeLayout(output, images, release, run);
  return {
    release,
    digest,
    images: images.map(({ platform, layers }) => ({ platform, layers, digest: manifests.get(platform) ?? '' })),
  };
}

async function withWorkFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const work = await mkdtemp(join(tmpdir(), 'sluice-layers-'));
  try {
    return await use(work);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

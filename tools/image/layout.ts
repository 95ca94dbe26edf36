import { createHash } from 'node:crypto';
import { copyFile, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { annotationsOf, describeConfig, type Run } from './config.ts';
import type { Layer } from './layers.ts';
import type { Platform } from './platforms.ts';
import type { Release } from './release.ts';

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';
const INDEX = 'application/vnd.oci.image.index.v1+json';
const CONFIG = 'application/vnd.oci.image.config.v1+json';
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip';
const EMPTY = 'application/vnd.oci.empty.v1+json';
const SBOM = 'application/vnd.cyclonedx+json';

/** A descriptor of a blob in the layout. */
interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

/** The contents of the image for a single platform. */
export interface PlatformImage {
  readonly platform: Platform;
  readonly layers: readonly Layer[];
  /** The CycloneDX document. */
  readonly sbom: string;
}

/** The digests of a layout. */
export interface WrittenLayout {
  /** The digest of the index with all platforms. */
  readonly digest: string;
  /** The manifest digest of each platform. */
  readonly manifests: ReadonlyMap<Platform, string>;
}

/**
 * Writes an OCI image layout (image-spec 1.1), replacing existing files. It consists of an index with a manifest for
 * each platform, and a separate manifest for each SBOM, which refers to the platform's manifest as its subject. The
 * SBOMs are not part of the index because older versions of skopeo would compress them, which changes the digest of the
 * index.
 */
export async function writeLayout(
  folder: string,
  images: readonly PlatformImage[],
  release: Release,
  run: Run,
): Promise<WrittenLayout> {
  await rm(folder, { recursive: true, force: true });
  await mkdir(join(folder, 'blobs', 'sha256'), { recursive: true });
  const blobs = new Blobs(folder);
  const manifests = new Map<Platform, string>();
  const described: object[] = [];
  const sboms: object[] = [];
  for (const { platform, layers, sbom } of images) {
    const manifest = await writeManifest(blobs, layers, describeConfig(platform, layers, release, run), release);
    manifests.set(platform, manifest.digest);
    described.push({ ...manifest, platform: { architecture: platform.architecture, os: 'linux' } });
    sboms.push({ ...(await writeSbom(blobs, manifest, sbom, release)), artifactType: SBOM });
  }
  const index = await blobs.writeJson(INDEX, {
    schemaVersion: 2,
    mediaType: INDEX,
    manifests: described,
    annotations: annotationsOf(release),
  });
  const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': release.version } };
  const layout = { schemaVersion: 2, mediaType: INDEX, manifests: [named, ...sboms] };
  await writeFile(join(folder, 'index.json'), JSON.stringify(layout));
  await writeFile(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  return { digest: index.digest, manifests };
}

async function writeManifest(
  blobs: Blobs,
  layers: readonly Layer[],
  config: object,
  release: Release,
): Promise<Descriptor> {
  for (const layer of layers) await blobs.copy(layer);
  return blobs.writeJson(MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    config: await blobs.writeJson(CONFIG, config),
    layers: layers.map(({ digest, size }) => ({ mediaType: LAYER, digest, size })),
    annotations: annotationsOf(release),
  });
}

async function writeSbom(blobs: Blobs, subject: Descriptor, sbom: string, release: Release): Promise<Descriptor> {
  return blobs.writeJson(MANIFEST, {
    schemaVersion: 2,
    mediaType: MANIFEST,
    artifactType: SBOM,
    config: await blobs.write(EMPTY, '{}'),
    layers: [await blobs.write(SBOM, sbom)],
    subject,
    annotations: { 'org.opencontainers.image.created': release.created },
  });
}

class Blobs {
  readonly #folder: string;

  constructor(layout: string) {
    this.#folder = join(layout, 'blobs', 'sha256');
  }

  async write(mediaType: string, text: string): Promise<Descriptor> {
    const hex = createHash('sha256').update(text).digest('hex');
    await writeFile(join(this.#folder, hex), text);
    return { mediaType, digest: `sha256:${hex}`, size: Buffer.byteLength(text) };
  }

  writeJson(mediaType: string, value: object): Promise<Descriptor> {
    return this.write(mediaType, JSON.stringify(value));
  }

  async copy({ file, digest }: Layer): Promise<void> {
    await copyFile(file, join(this.#folder, digest.slice('sha256:'.length)));
  }
}

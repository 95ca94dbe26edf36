import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import type { Build } from './builds.ts';
import { digestOf, unpackLayers } from './files.ts';
import { type ImageConfig, type Manifest, OciLayout } from './oci-layout.ts';

export type Architecture = 'amd64' | 'arm64';

/** The image of a platform. */
export type PlatformImage = {
  readonly architecture: Architecture;
  readonly manifest: Manifest;
  readonly config: ImageConfig;
  /** The paths of the layers. */
  readonly layers: readonly string[];
};

/** Describes the image. If it cannot be built, the tests are skipped, and the name contains the reason. */
export function describeImage(tests: (builds: readonly [Build, Build]) => void): void {
  const image = inject('image');
  const isBuilt = typeof image !== 'string';
  describe.skipIf(!isBuilt)(`the image${isBuilt ? '' : ` is NOT TESTED: ${image}`}`, () => {
    tests(isBuilt ? image : ([] as never));
  });
}

/** Opens a layout written by a build. @param name `image` or `redis-image` */
export function openLayout({ folder }: Build, name = 'image'): OciLayout {
  return new OciLayout(join(folder, 'dist', name));
}

/** Returns the images of all platforms in a layout. */
export function readImages(layout: OciLayout): PlatformImage[] {
  return layout.platforms().map(descriptor => {
    const manifest = layout.readJson<Manifest>(descriptor);
    return {
      architecture: descriptor.platform?.architecture as Architecture,
      manifest,
      config: layout.readJson<ImageConfig>(manifest.config),
      layers: manifest.layers.map(layer => layout.pathOf(layer)),
    };
  });
}

const ARCHITECTURES: readonly Architecture[] = ['amd64', 'arm64'];

/** Decompresses a layer into a folder, unless it is already there. Returns the path. */
function decompress(layer: string, folder: string): string {
  const tar = join(folder, `${basename(layer)}.tar`);
  if (!existsSync(tar)) writeFileSync(tar, gunzipSync(readFileSync(layer)));
  return tar;
}

/**
 * Unpacks the images of a layout before the tests and deletes them after them. Defines the tests that are the same for
 * all layouts.
 * @param name `image` or `redis-image`
 */
export function useImages([one, another]: readonly [Build, Build], name = 'image') {
  let folder: TemporaryFolder;
  let layout: OciLayout;
  let images: ReadonlyMap<Architecture, PlatformImage>;
  const rootOf = (architecture: Architecture) => join(folder.path, architecture);
  const imageOf = (architecture: Architecture) => images.get(architecture) as PlatformImage;

  beforeAll(async () => {
    folder = await temporaryFolder(name);
    layout = openLayout(one, name);
    images = new Map(
      readImages(layout).map(image => {
        const layers = image.layers.map(layer => decompress(layer, folder.path));
        return [image.architecture, { ...image, layers }];
      }),
    );
    for (const { architecture, layers } of images.values()) {
      await mkdir(rootOf(architecture));
      unpackLayers(layers, rootOf(architecture));
    }
  });
  afterAll(() => folder.remove());

  test('has the same digest regardless of the folder, umask, and time zone', () => {
    const read = (build: Build) => readFileSync(join(build.folder, 'dist', name, 'index.json'), 'utf8');
    expect(another.output).toBe(one.output);
    expect(read(another)).toBe(read(one));
    expect(one.output).toContain(`\nindex ${layout.entries[0]?.digest}\n`);
  });

  test('is an index of both platforms whose blobs match their descriptors', () => {
    expect(layout.platforms().map(({ platform }) => platform)).toEqual(
      ARCHITECTURES.map(architecture => ({ architecture, os: 'linux' })),
    );
    for (const architecture of ARCHITECTURES) {
      const { manifest, config, layers } = imageOf(architecture);
      expect(config).toMatchObject({ architecture, os: 'linux', created: '2023-11-14T22:13:20Z' });
      for (const layer of manifest.layers) layout.read(layer);
      expect(config.rootfs.diff_ids).toEqual(layers.map(layer => digestOf(readFileSync(layer))));
    }
    for (const descriptor of layout.entries.slice(1)) {
      const { config, layers } = layout.readJson<Manifest>(descriptor);
      for (const each of [config, ...layers]) layout.read(each);
    }
    expect(layout.unread()).toEqual([]);
    expect(layout.entries[0]?.annotations).toEqual({ 'org.opencontainers.image.ref.name': packageJson.version });
  });

  return { rootOf, imageOf, layout: () => layout, folder: () => folder.path };
}

import { join } from 'node:path';
import { describe, inject } from 'vitest';
import type { Build } from './builds.ts';
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

import type { Layer } from './layers.ts';
import type { Platform } from './platforms.ts';
import { ENTRY } from './program.ts';
import type { Release } from './release.ts';
import { CERTIFICATES, NODE, USER_ID } from './system.ts';

/** How a container starts. The Dockerfile must say the same. */
export const RUN = {
  User: `${USER_ID}:${USER_ID}`,
  // Node only reads these certificates if NODE_OPTIONS contains --use-system-ca.
  Env: [`PATH=/usr/bin`, `HOME=/home/nonroot`, `SSL_CERT_FILE=${CERTIFICATES}`],
  Entrypoint: [NODE, ENTRY],
  Cmd: ['--help'],
  ExposedPorts: { '8080/tcp': {}, '8081/tcp': {}, '9090/tcp': {} },
};

/** Returns the annotations of OCI, which are both labels of the image and annotations of its index. */
export function annotationsOf({ version, description, license, created, revision }: Release): Record<string, string> {
  return Object.fromEntries(
    Object.entries({ title: 'Sluice', description, version, licenses: license, created, revision })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`org.opencontainers.image.${name}`, value as string]),
  );
}

/** Returns the image configuration for a platform (application/vnd.oci.image.config.v1+json). */
export function describeConfig(platform: Platform, layers: readonly Layer[], release: Release): object {
  const { created } = release;
  return {
    created,
    architecture: platform.architecture,
    os: 'linux',
    config: { ...RUN, Labels: annotationsOf(release) },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ name }) => ({ created, created_by: `make image: ${name}` })),
  };
}

import { USER_ID } from './debian/system.ts';
import type { Layer } from './layers.ts';
import type { Platform } from './platforms.ts';
import { ENTRY } from './program.ts';
import { DATA, REDIS_SERVER } from './redis.ts';
import type { Release } from './release.ts';
import { CERTIFICATES, NODE } from './system.ts';

/** The settings for starting a container. */
export interface Run {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly ExposedPorts: Readonly<Record<string, object>>;
}

const User = `${USER_ID}:${USER_ID}`;

/** The settings, which must be the same in the Dockerfile. */
export const RUN_SLUICE: Run = {
  User,
  // Node only reads these certificates if NODE_OPTIONS contains --use-system-ca.
  Env: [`PATH=/usr/bin`, `HOME=/home/nonroot`, `SSL_CERT_FILE=${CERTIFICATES}`],
  Entrypoint: [NODE, ENTRY],
  Cmd: ['--help'],
  ExposedPorts: { '8080/tcp': {}, '8081/tcp': {}, '9090/tcp': {} },
};

/**
 * The settings of the Redis image. Arguments replace `Cmd`. Without a mounted volume, Redis reports that it cannot
 * write to the folder.
 */
export const RUN_REDIS: Run = {
  User,
  Env: [`PATH=/usr/bin`, `HOME=/home/nonroot`],
  Entrypoint: [REDIS_SERVER],
  Cmd: ['--dir', DATA],
  ExposedPorts: { '6379/tcp': {} },
};

/** Returns the OCI annotations, which are used as image labels and as annotations of its index. */
export function annotationsOf(release: Release): Record<string, string> {
  const { title, version, description, license, created, revision } = release;
  return Object.fromEntries(
    Object.entries({ title, description, version, licenses: license, created, revision })
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => [`org.opencontainers.image.${name}`, value as string]),
  );
}

/** Returns the image configuration for a platform (application/vnd.oci.image.config.v1+json). */
export function describeConfig(platform: Platform, layers: readonly Layer[], release: Release, run: Run): object {
  const { created } = release;
  return {
    created,
    architecture: platform.architecture,
    os: 'linux',
    config: { ...run, Labels: annotationsOf(release) },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(({ name }) => ({ created, created_by: `make image: ${name}` })),
  };
}

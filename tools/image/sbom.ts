import { createHash } from 'node:crypto';
import { lockedPackages } from './debian/packages.ts';
import type { NpmPackage } from './dependencies.ts';
import { lockedNode } from './node-binary.ts';
import type { Platform } from './platforms.ts';
import type { Release } from './release.ts';

/** A CycloneDX component. */
export interface Component {
  readonly type: 'library' | 'platform';
  readonly 'bom-ref': string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly cpe?: string;
  readonly licenses?: readonly object[];
  readonly hashes?: readonly { readonly alg: string; readonly content: string }[];
}

/**
 * Renders the SBOM of a platform (CycloneDX 1.5, JSON) with the packages whose files are in the image. The SBOM of an
 * image is always the same, including its serial number.
 */
export function renderSbom(platform: Platform, packages: readonly Component[], release: Release): string {
  // A package that is installed in two folders is a single component.
  const components = [...new Map(packages.map(component => [component.purl, component])).values()];
  const { name, version, license, description } = release;
  const purl = `pkg:npm/${name}@${version}`;
  const document = {
    bomFormat: 'CycloneDX',
    specVersion: '1.5',
    serialNumber: serialNumberOf(JSON.stringify([platform.name, release, components])),
    version: 1,
    metadata: {
      timestamp: release.created,
      component: {
        type: 'container',
        'bom-ref': purl,
        name,
        version,
        description,
        purl,
        licenses: [{ expression: license }],
        properties: [{ name: 'sluice:platform', value: platform.name }],
      },
    },
    components,
    dependencies: [{ ref: purl, dependsOn: components.map(component => component['bom-ref']).toSorted() }],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** Describes the Node binary. */
export function describeNode(platform: Platform): Component {
  const { version, integrity } = lockedNode(platform);
  const purl = `pkg:npm/${platform.nodePackage}@${version}`;
  return {
    type: 'platform',
    'bom-ref': purl,
    name: 'node',
    version,
    purl,
    cpe: `cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`,
    licenses: [{ license: { id: 'MIT' } }],
    hashes: [hashOf(integrity)],
  };
}

/**
 * Describes locked Debian packages.
 * @param names of the packages in the lockfile
 */
export function describeDebian(platform: Platform, names: readonly string[]): Component[] {
  return lockedPackages(platform, names).map(({ name, version, sha256 }) => {
    const query = `arch=${platform.architecture}&distro=debian-12`;
    const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?${query}`;
    const hashes = [{ alg: 'SHA-256', content: sha256 }];
    return { type: 'library', 'bom-ref': purl, name, version, purl, hashes };
  });
}

export function describeNpm({ name, version, license, integrity }: NpmPackage): Component {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return {
    type: 'library',
    'bom-ref': purl,
    name,
    version,
    purl,
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
    ...(integrity === undefined ? {} : { hashes: [hashOf(integrity)] }),
  };
}

/** @param integrity `sha512-<base64>`, as in a lockfile */
function hashOf(integrity: string) {
  return { alg: 'SHA-512', content: Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex') };
}

/** Returns a UUID (RFC 9562, version 8) derived from a text. */
function serialNumberOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  const variant = '89ab'[Number.parseInt(hex[16] ?? '0', 16) % 4];
  return `urn:uuid:${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

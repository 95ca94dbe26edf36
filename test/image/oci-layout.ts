import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The fields of OCI descriptors, manifests, indexes, and configurations which the tests use. */
export type Descriptor = {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly artifactType?: string;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
};

export type Manifest = {
  readonly config: Descriptor;
  readonly layers: readonly Descriptor[];
  readonly subject?: Descriptor;
};

export type ImageConfig = {
  readonly architecture: string;
  readonly os: string;
  readonly created: string;
  readonly config: {
    readonly User: string;
    readonly Env: readonly string[];
    readonly Entrypoint: readonly string[];
    readonly Cmd: readonly string[];
    readonly ExposedPorts: Readonly<Record<string, object>>;
    readonly Labels: Readonly<Record<string, string>>;
  };
  readonly rootfs: { readonly diff_ids: readonly string[] };
};

type Index = { readonly manifests: readonly Descriptor[] };

/** Reads an OCI image layout and checks each blob against its descriptor. */
export class OciLayout {
  readonly folder: string;
  /** The entries of index.json. */
  readonly entries: readonly Descriptor[];
  readonly #read = new Set<string>();

  constructor(folder: string) {
    this.folder = folder;
    this.entries = (JSON.parse(readFileSync(join(folder, 'index.json'), 'utf8')) as Index).manifests;
  }

  pathOf({ digest }: Descriptor): string {
    return join(this.folder, 'blobs', ...digest.split(':'));
  }

  /** @throws if the blob does not match its descriptor */
  read(descriptor: Descriptor): Buffer {
    const blob = readFileSync(this.pathOf(descriptor));
    const digest = `sha256:${createHash('sha256').update(blob).digest('hex')}`;
    if (digest !== descriptor.digest || blob.length !== descriptor.size) {
      throw new Error(`${descriptor.digest} has ${blob.length} bytes instead of ${descriptor.size}, digest ${digest}`);
    }
    this.#read.add(digest);
    return blob;
  }

  readJson<T>(descriptor: Descriptor): T {
    return JSON.parse(this.read(descriptor).toString()) as T;
  }

  /** Returns the descriptors of the platforms' manifests. */
  platforms(): readonly Descriptor[] {
    return this.readJson<Index>(this.entries[0] as Descriptor).manifests;
  }

  /** Returns the digests of blobs that have not been read yet. */
  unread(): string[] {
    return readdirSync(join(this.folder, 'blobs', 'sha256'))
      .map(name => `sha256:${name}`)
      .filter(digest => !this.#read.has(digest));
  }
}

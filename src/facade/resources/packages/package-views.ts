import { z } from 'zod';
import { publicId } from '../../../core/ids/ids.ts';
import type { Cached } from '../../caches/cached.ts';
import { publicIdField } from '../../contract/fields.ts';

const PackageState = z.enum(['Active', 'Archived']).meta({
  description: "The package's status. Archived packages cannot be renamed or get new streams or blocks.",
});

export const CreatedPackage = z
  .object({
    publicId: publicIdField('Package'),
    key: z.string().meta({ description: 'The package key, which is generated from the original name.' }),
    name: z.string().meta({ description: "The package's current name." }),
    status: PackageState,
  })
  .meta({ id: 'CreatedPackage' });

export const PackageEntry = CreatedPackage.extend({
  description: z.string().nullable().meta({ description: 'An optional description of the package.' }),
  streamCount: z.int().meta({ description: 'The number of distinct streams in the package.' }),
}).meta({ id: 'PackageEntry' });

export const PackageDetail = PackageEntry.extend({
  streams: z
    .array(
      z.object({
        catalogEntryPublicId: publicIdField('CatalogStream'),
        key: z.string().meta({
          description: "The stream's key. The stream might not exist yet if it was specified in a manifest.",
        }),
      }),
    )
    .meta({ description: 'A list of streams, sorted by key.' }),
}).meta({ id: 'Package' });

type PackageObject = Pick<Cached<'Package'>, 'metadata' | 'spec'>;

/** Returns a package's current name. For a renamed package, this is its `displayName`. */
export function packageName({ metadata, spec }: PackageObject): string {
  return spec.displayName ?? spec.name ?? metadata.name;
}

export function packageId({ metadata }: PackageObject): string {
  return publicId('Package', metadata.namespace ?? '', metadata.name);
}

export function createdPackage(pkg: PackageObject): z.output<typeof CreatedPackage> {
  return {
    publicId: packageId(pkg),
    key: pkg.metadata.name,
    name: packageName(pkg),
    status: pkg.spec.archived === true ? 'Archived' : 'Active',
  };
}

export function packageEntry(pkg: PackageObject): z.output<typeof PackageEntry> {
  const { description = null, streams = [] } = pkg.spec;
  return { ...createdPackage(pkg), description, streamCount: new Set(streams).size };
}

export function packageDetail(pkg: PackageObject): z.output<typeof PackageDetail> {
  const { namespace = '' } = pkg.metadata;
  const streams = [...new Set(pkg.spec.streams)].toSorted();
  return {
    ...packageEntry(pkg),
    streams: streams.map(key => ({ catalogEntryPublicId: publicId('CatalogStream', namespace, key), key })),
  };
}

/**
 * Returns the name in the list for a public stream id. The stream does not need to exist. Undefined if the list does
 * not contain it.
 */
export function listedStream({ metadata, spec }: PackageObject, catalogEntryPublicId: string): string | undefined {
  const { namespace = '' } = metadata;
  return spec.streams?.find(name => publicId('CatalogStream', namespace, name) === catalogEntryPublicId);
}

/**
 * Returns true if the package is the same as a package created by this request. In this case, the request can be
 * repeated. The name and the description must be equal. The package must not be archived.
 */
export function isAsCreated(pkg: PackageObject, wanted: { name: string; description?: string | undefined }): boolean {
  const { name = pkg.metadata.name, description, archived } = pkg.spec;
  return (
    archived !== true && name === wanted.name && packageName(pkg) === wanted.name && description === wanted.description
  );
}

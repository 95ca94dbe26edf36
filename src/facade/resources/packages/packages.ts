import { z } from 'zod';
import { PackageSpec } from '../../../api/kinds/package.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { slugOf } from '../../../core/ids/slug.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { ObjectName } from '../../../kube/object.ts';
import type { Cached } from '../../caches/cached.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { findOwned, unknownObject } from '../../objects/owned-objects.ts';
import {
  CreatedPackage,
  createdPackage,
  isAsCreated,
  PackageDetail,
  PackageEntry,
  packageDetail,
  packageEntry,
  packageId,
  packageName,
} from './package-views.ts';

const spec = PackageSpec.shape;
const name = spec.name.unwrap();
const description = spec.description;

const PackageCreation = z
  .strictObject({
    name: name.meta({
      description:
        "The name of the package, 1 to 128 characters long, on a single line. Its key is derived from the name, using lowercase Latin letters, digits, and hyphens, and can't be changed later. If the name has none of these characters, the key is a hash with the prefix p-.",
      example: 'Basics',
    }),
    description: description.meta({ example: 'What every partner needs.' }),
  })
  .meta({ id: 'PackageCreation' });

const PackageUpdate = z
  .strictObject({
    name: name.meta({
      description: 'The new name, between 1 and 128 characters long, on a single line. The package key is not changed.',
      example: 'The basics',
    }),
    description: description.meta({ example: 'What every partner needs.' }),
  })
  .meta({
    id: 'PackageUpdate',
    description: 'The new name and description. If the description is omitted, it is removed.',
  });

/** Reads a package from the API server before it is changed. @throws Refusal 404, or 409 `being_deleted` */
export async function readForChange(caches: Facade['caches'], object: ObjectName): Promise<Cached<'Package'>> {
  const pkg = await caches.live('Package', object);
  if (pkg === undefined) throw unknownObject('Package');
  if (pkg.metadata.deletionTimestamp !== undefined) throw new Refusal('being_deleted');
  return pkg;
}

/** Returns the key used to lock a package. Changes using this lock run sequentially. */
export function turnOf({ namespace = '', name }: ObjectName): string {
  return `Package/${namespace}/${name}`;
}

function keyTaken(pkg: Cached<'Package'>): Refusal {
  const { key, status } = createdPackage(pkg);
  const leaving = pkg.metadata.deletionTimestamp === undefined ? '' : ', being deleted';
  const detail = `The key ${key} is used by ${packageId(pkg)}, ${JSON.stringify(packageName(pkg))} (${status}${leaving}).`;
  // A package in any other state can't be changed any more.
  const remedy =
    status === 'Active' && leaving === '' ? 'Use this package, or choose another name' : 'Choose another name';
  return new Refusal('package_key_conflict', `${detail} ${remedy}. The key is derived from the name.`);
}

/**
 * Returns true if a package is being deleted, but a Block still prevents its deletion. Such a package can exist
 * indefinitely.
 */
async function isKept(caches: Facade['caches'], { metadata }: Cached<'Package'>): Promise<boolean> {
  if (metadata.deletionTimestamp === undefined) return false;
  const { namespace = '', name } = metadata;
  for (const block of caches.list('Block', namespace)) {
    if (block.spec.target.kind !== 'Package' || block.spec.target.name !== name) continue;
    if ((await caches.live('Block', block.metadata)) !== undefined) return true;
  }
  return false;
}

const createPackage = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/packages',
  access: 'producer',
  scope: 'waas:write',
  operation: 'createPackage',
  tag: 'Packages',
  summary: 'Create a package',
  description:
    "Creates a package without streams. Repeating this request returns the same response unless the package has been renamed, archived, or given a different description in the meantime. You can't use a package key again, even after the package has been archived.",
  body: PackageCreation,
  answers: {
    201: {
      description: 'The package exists.',
      schema: CreatedPackage,
      headers: { Location: 'The path of the new package.' },
    },
  },
  problems: ['limit_reached', 'package_key_conflict'],
  async handle({ caches, writer }, { tenant, body }) {
    const object = { namespace: tenant.name, name: slugOf(body.name, 'p') };
    const present = await writer.edit(async () => {
      const before = await caches.live('Package', object);
      if (before !== undefined && before.metadata.deletionTimestamp === undefined) {
        if (isAsCreated(before, body)) return before;
        throw keyTaken(before);
      }
      if (before !== undefined && (await isKept(caches, before))) throw keyTaken(before);
      return writer.apply('Package', object, {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['name', 'displayName', 'description'],
        spec: body.description === undefined ? { name: body.name } : body,
      });
    }, turnOf(object));
    await writer.waitFor('Package', present);
    const pkg = createdPackage(present);
    const headers = { location: `/waas/producer/${tenant.publicId}/packages/${pkg.publicId}` };
    return { status: 201, body: pkg, headers, about: { kind: 'Package', ...object } };
  },
});

const updatePackage = defineRoute({
  method: 'PUT',
  path: '/waas/producer/{tenant}/packages/{pkg}',
  access: 'producer',
  scope: 'waas:write',
  operation: 'updatePackage',
  tag: 'Packages',
  summary: 'Rename or describe a package',
  body: PackageUpdate,
  answers: { 200: { description: 'The updated package.', schema: PackageDetail } },
  problems: ['unknown_resource', 'package_archived'],
  async handle({ caches, writer }, { tenant, params, body }) {
    const found = await findOwned(caches, 'Package', tenant.name, params.pkg);
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await writer.edit(async () => {
      const before = await readForChange(caches, object);
      if (before.spec.archived === true) throw new Refusal('package_archived');
      return writer.apply('Package', object, {
        manager: FIELD_MANAGER.facade,
        before,
        // Don't rename a package that was archived in the meantime.
        exactly: true,
        concern: ['name', 'displayName', 'description'],
        spec: {
          // Without the name, applying the object would try to remove it. A CRD rule would reject this because the name
          // is immutable.
          ...(before.spec.name === undefined ? {} : { name: before.spec.name }),
          displayName: body.name,
          ...(body.description === undefined ? {} : { description: body.description }),
        },
      });
    }, turnOf(object));
    // A later call may have renamed the package in the meantime, so the response contains the state that this call has
    // applied.
    await writer.waitFor('Package', applied);
    return { status: 200, body: packageDetail(applied), about: { kind: 'Package', ...object } };
  },
});

const listPackages = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/packages',
  access: 'producer',
  scope: 'waas:read',
  operation: 'listPackages',
  tag: 'Packages',
  summary: 'List all packages',
  description:
    "Packages that are being deleted are not listed. Their blocks stay in force and prevent the deletion until you remove them. To find these blocks, list an integration's blocks.",
  query: PageQuery.extend({
    status: z.enum(['Active', 'Archived', 'all']).optional().meta({
      description: 'Only return packages with the given status. Defaults to Active.',
      example: 'Active',
    }),
  }),
  answers: { 200: { description: 'A list of packages, sorted by key.', schema: pageOf(PackageEntry) } },
  problems: ['malformed_cursor'],
  async handle({ caches }, { tenant, query }) {
    const { status = 'Active' } = query;
    const packages = caches
      .list('Package', tenant.name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .filter(({ spec }) => status === 'all' || (spec.archived === true) === (status === 'Archived'));
    const { data, nextCursor } = paginate(['packages', tenant.name], packages, ({ metadata }) => metadata.name, query);
    return { status: 200, body: { data: data.map(packageEntry), nextCursor } };
  },
});

const getPackage = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/packages/{pkg}',
  access: 'producer',
  scope: 'waas:read',
  operation: 'getPackage',
  tag: 'Packages',
  summary: 'Retrieve a package',
  answers: { 200: { description: 'The requested package, including its streams.', schema: PackageDetail } },
  problems: ['unknown_resource'],
  async handle({ caches }, { tenant, params }) {
    return { status: 200, body: packageDetail(await findOwned(caches, 'Package', tenant.name, params.pkg)) };
  },
});

export const PACKAGE_ROUTES = [createPackage, updatePackage, listPackages, getPackage];

import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { findOwned } from '../../objects/owned-objects.ts';
import { listedStream } from './package-views.ts';
import { readForChange, turnOf } from './packages.ts';

/** The limit of the custom resource. */
const MOST_STREAMS = 500;

/** A single field manager owns the list. */
const LIST_OF_STREAMS = { manager: FIELD_MANAGER.facadeStreams, exactly: true, concern: ['streams'] } as const;

const PackageMember = z
  .strictObject({ catalogEntryPublicId: publicIdField('CatalogStream') })
  .meta({ id: 'PackageMember' });

const addStream = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/packages/{pkg}/streams',
  access: 'producer',
  scope: 'waas:write',
  operation: 'addStreamToPackage',
  tag: 'Packages',
  summary: 'Add a stream to a package',
  description:
    'After this request returns, all blocks on the package also apply to the stream. If the stream already belongs to the package, the response is the same even if the package has been archived.',
  body: PackageMember,
  answers: {
    204: { description: 'The stream now belongs to the package, and all blocks on the package apply to this stream.' },
  },
  problems: ['unknown_resource', 'package_archived'],
  async handle({ caches, writer }, { tenant, params, body: { catalogEntryPublicId } }) {
    const found = await findOwned(caches, 'Package', tenant.name, params.pkg);
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await writer.edit(async () => {
      const before = await readForChange(caches, object);
      if (listedStream(before, catalogEntryPublicId) !== undefined) return before;
      const stream = await findOwned(caches, 'CatalogStream', tenant.name, catalogEntryPublicId);
      if (before.spec.archived === true) throw new Refusal('package_archived');
      const streams = [...new Set([...(before.spec.streams ?? []), stream.metadata.name])].toSorted();
      if (streams.length > MOST_STREAMS) {
        throw new Refusal(
          'invalid_request',
          `A package can have at most ${MOST_STREAMS} streams. Remove a stream from this package first.`,
        );
      }
      return writer.apply('Package', object, { ...LIST_OF_STREAMS, before, spec: { streams } });
    }, turnOf(object));
    await writer.waitFor('Package', applied);
    return { status: 204, about: { kind: 'Package', ...object } };
  },
});

const removeStream = defineRoute({
  method: 'DELETE',
  path: '/waas/producer/{tenant}/packages/{pkg}/streams/{catalogEntryPublicId}',
  access: 'producer',
  scope: 'waas:write',
  operation: 'removeStreamFromPackage',
  tag: 'Packages',
  summary: 'Remove a stream from a package',
  description:
    "You can also remove streams from an archived package. If the stream doesn't belong to the package, the response is the same.",
  answers: {
    204: { description: "The stream doesn't belong to the package, and no blocks on the package apply to it." },
  },
  async handle({ caches, writer }, { tenant, params: { pkg, catalogEntryPublicId } }) {
    const found = await caches.find('Package', pkg, tenant.name);
    if (found === undefined) return { status: 204 };
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await writer.edit(async () => {
      const before = await caches.live('Package', object);
      if (before === undefined) return undefined;
      const listed = listedStream(before, catalogEntryPublicId);
      const leaving = before.metadata.deletionTimestamp !== undefined;
      if (listed === undefined) return leaving ? undefined : before;
      if (leaving) throw new Refusal('being_deleted');
      const streams = [...new Set(before.spec.streams)].filter(name => name !== listed).toSorted();
      return writer.apply('Package', object, { ...LIST_OF_STREAMS, before, spec: { streams } });
    }, turnOf(object));
    // Wait even if there are no changes. An earlier call may have stored the changes but timed out before they took
    // effect.
    if (applied !== undefined) await writer.waitFor('Package', applied);
    return { status: 204, about: { kind: 'Package', ...object } };
  },
});

const archivePackage = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/packages/{pkg}/archive',
  access: 'producer',
  scope: 'waas:write',
  operation: 'archivePackage',
  tag: 'Packages',
  summary: 'Archive a package',
  description:
    "Permanently archives a package. You can't rename it or add streams or blocks to it. By default, it is not listed. You can't use its key again. Existing blocks remain until you remove them one by one.",
  answers: { 204: { description: 'The package has been archived.' } },
  problems: ['unknown_resource'],
  async handle({ caches, writer }, { tenant, params }) {
    const found = await findOwned(caches, 'Package', tenant.name, params.pkg);
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await writer.edit(async () => {
      const before = await readForChange(caches, object);
      if (before.spec.archived === true) return before;
      return writer.apply('Package', object, {
        manager: FIELD_MANAGER.facadeArchive,
        before,
        concern: ['archived'],
        spec: { archived: true },
      });
    });
    await writer.waitFor('Package', applied);
    return { status: 204, about: { kind: 'Package', ...object } };
  },
});

export const PACKAGE_STREAM_ROUTES = [addStream, removeStream, archivePackage];

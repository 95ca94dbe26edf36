import { z } from 'zod';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { Refusal } from '../../../http/refusal.ts';
import { publicIdField } from '../../contract/fields.ts';
import { defineRoute } from '../../contract/route.ts';
import { findOwned } from '../../objects/owned-objects.ts';
import { listedStream } from './package-views.ts';
import { readForChange, turnOf } from './packages.ts';

/** What the custom resource takes. */
const MOST_STREAMS = 500;

/** The list as a whole has one manager. */
const LIST_OF_STREAMS = { manager: FIELD_MANAGER.facadeStreams, exactly: true, concern: ['streams'] } as const;

const PackageMember = z
  .strictObject({ catalogEntryPublicId: publicIdField('CatalogStream') })
  .meta({ id: 'PackageMember' });

const addStream = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/packages/{pkg}/streams',
  access: 'producer',
  operation: 'addStreamToPackage',
  tag: 'Packages',
  summary: 'Add a stream to a package',
  description:
    'Where the package is blocked, the stream is from the answer on. One that is in already is answered the same way, in an archived package too.',
  body: PackageMember,
  answers: { 204: { description: 'The stream is in the package, and covered by its blocks.' } },
  problems: ['unknown_resource', 'package_archived'],
  async handle({ world, objects }, { tenant, params, body: { catalogEntryPublicId } }) {
    const found = await findOwned(world, 'Package', tenant.name, params.pkg);
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await objects.edit(async () => {
      const before = await readForChange(world, object);
      if (listedStream(before, catalogEntryPublicId) !== undefined) return before;
      const stream = await findOwned(world, 'CatalogStream', tenant.name, catalogEntryPublicId);
      if (before.spec.archived === true) throw new Refusal('package_archived');
      const streams = [...new Set([...(before.spec.streams ?? []), stream.metadata.name])].toSorted();
      if (streams.length > MOST_STREAMS) {
        throw new Refusal('invalid_request', `A package has at most ${MOST_STREAMS} streams, and this one is full.`);
      }
      return objects.apply('Package', object, { ...LIST_OF_STREAMS, before, spec: { streams } });
    }, turnOf(object));
    await objects.waitFor('Package', applied);
    return { status: 204, about: { kind: 'Package', ...object } };
  },
});

const removeStream = defineRoute({
  method: 'DELETE',
  path: '/waas/producer/{tenant}/packages/{pkg}/streams/{catalogEntryPublicId}',
  access: 'producer',
  operation: 'removeStreamFromPackage',
  tag: 'Packages',
  summary: 'Take a stream out of a package',
  description: 'Also out of an archived one. What is not there is answered the same way.',
  answers: { 204: { description: 'The stream is not in the package, and not covered by its blocks.' } },
  async handle({ world, objects }, { tenant, params: { pkg, catalogEntryPublicId } }) {
    const found = await world.find('Package', pkg, tenant.name);
    if (found === undefined) return { status: 204 };
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await objects.edit(async () => {
      const before = await world.live('Package', object);
      if (before === undefined) return undefined;
      const listed = listedStream(before, catalogEntryPublicId);
      const leaving = before.metadata.deletionTimestamp !== undefined;
      if (listed === undefined) return leaving ? undefined : before;
      if (leaving) throw new Refusal('being_deleted');
      const streams = [...new Set(before.spec.streams)].filter(name => name !== listed).toSorted();
      return objects.apply('Package', object, { ...LIST_OF_STREAMS, before, spec: { streams } });
    }, turnOf(object));
    // Also when there was nothing to do: the call may repeat one that was stored and not in force in time.
    if (applied !== undefined) await objects.waitFor('Package', applied);
    return { status: 204, about: { kind: 'Package', ...object } };
  },
});

const archivePackage = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/packages/{pkg}/archive',
  access: 'producer',
  operation: 'archivePackage',
  tag: 'Packages',
  summary: 'Archive a package, for good',
  description:
    'It takes no new streams, names or blocks and is left out of lists; its key stays taken. The blocks that it has hold on: lift them one by one.',
  answers: { 204: { description: 'The package is archived.' } },
  problems: ['unknown_resource'],
  async handle({ world, objects }, { tenant, params }) {
    const found = await findOwned(world, 'Package', tenant.name, params.pkg);
    const object = { namespace: tenant.name, name: found.metadata.name };
    const applied = await objects.edit(async () => {
      const before = await readForChange(world, object);
      if (before.spec.archived === true) return before;
      return objects.apply('Package', object, {
        manager: FIELD_MANAGER.facadeArchive,
        before,
        concern: ['archived'],
        spec: { archived: true },
      });
    });
    await objects.waitFor('Package', applied);
    return { status: 204, about: { kind: 'Package', ...object } };
  },
});

export const PACKAGE_STREAM_ROUTES = [addStream, removeStream, archivePackage];

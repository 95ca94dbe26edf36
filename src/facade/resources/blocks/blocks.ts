import type { BlockSpec } from '../../../api/kinds/block.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { blockId } from '../../../core/ids/ids.ts';
import { blockObjectName } from '../../../core/ids/object-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import type { ObjectName } from '../../../kube/object.ts';
import type { Cached } from '../../caches/cached.ts';
import { PageQuery, pageOf, paginate } from '../../contract/page.ts';
import { type Answer, defineRoute } from '../../contract/route.ts';
import type { Facade } from '../../objects/facade.ts';
import { assertNotManagedElsewhere } from '../../objects/field-conflicts.ts';
import { isLimit } from '../../objects/limit-guard.ts';
import { findOwned, unknownObject } from '../../objects/owned-objects.ts';
import { BlockEntry, blockEntry, groupBlocks, namesInBlocks } from './block-views.ts';

type TargetKind = BlockSpec['target']['kind'];
type Pair = Pick<BlockSpec, 'integration' | 'target'>;

/** Integration and stream or package of a call, by public id. */
interface Asked {
  readonly namespace: string;
  readonly integration: string;
  readonly kind: TargetKind;
  readonly target: string;
}

/** Reads all Blocks of a pair from the API server, except for Blocks managed by REST. */
async function readOthers({ caches }: Facade, namespace: string, { integration, target }: Pair, own: string) {
  const known = caches.by('Block', 'publicId', blockId(namespace, integration, target.kind, target.name));
  const others = known.filter(({ metadata }) => metadata.namespace === namespace && metadata.name !== own);
  const live = await Promise.all(
    others.map(({ metadata }) => caches.live('Block', { namespace, name: metadata.name })),
  );
  return live.filter(
    block => block !== undefined && block.metadata.deletionTimestamp === undefined,
  ) as Cached<'Block'>[];
}

/** Checks that the target of a new Block exists and can be blocked. @throws Refusal 404, 409 */
async function assertBlockable({ caches }: Facade, namespace: string, { integration, target }: Pair): Promise<void> {
  const [grantee, kept] = await Promise.all([
    caches.live('Integration', { namespace, name: integration }),
    caches.live(target.kind, { namespace, name: target.name }),
  ]);
  if (grantee === undefined) throw unknownObject('Integration');
  if (kept === undefined) throw unknownObject(target.kind);
  if (target.kind === 'CatalogStream') return;
  // Streams can be blocked during deletion because events are still being delivered. This must not be possible for
  // packages, because the Block would prevent their deletion.
  if (kept.metadata.deletionTimestamp !== undefined) throw new Refusal('being_deleted');
  if ((kept as Cached<'Package'>).spec.archived === true) throw new Refusal('package_archived');
}

async function block(facade: Facade, { namespace, integration, kind, target }: Asked): Promise<Answer> {
  const { caches, writer } = facade;
  const grantee = await findOwned(caches, 'Integration', namespace, integration);
  const kept = await findOwned(caches, kind, namespace, target);
  const pair = { integration: grantee.metadata.name, target: { kind, name: kept.metadata.name } };
  const object: ObjectName = { namespace, name: blockObjectName(namespace, pair.integration, kind, pair.target.name) };
  const applied = await writer.edit(async () => {
    const before = await caches.live('Block', object);
    // No new Block is required if another manager already has one, even when a new Block would be refused.
    const insteadOf = async (error: unknown) => {
      const [standing] = await readOthers(facade, namespace, pair, object.name);
      if (standing === undefined) throw error;
      return standing;
    };
    try {
      if (before === undefined) await assertBlockable(facade, namespace, pair);
    } catch (error) {
      return insteadOf(error);
    }
    try {
      return await writer.apply('Block', object, {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ['integration', 'target'],
        spec: pair,
      });
    } catch (error) {
      if (!isLimit(error)) throw error;
      return insteadOf(error);
    }
  });
  // There's no need to check Redis here, although it may have lost its data since the condition was set. In this case,
  // events are not routed until the state has been rebuilt from the custom resources, including the Block.
  await writer.waitFor('Block', applied, 'Enforced');
  return { status: 204, about: { kind: 'Block', namespace, name: applied.metadata.name } };
}

async function unblock(facade: Facade, { namespace, integration, kind, target }: Asked): Promise<Answer> {
  const { caches, writer } = facade;
  const [grantee, kept] = await Promise.all([
    caches.find('Integration', integration, namespace),
    caches.find(kind, target, namespace),
  ]);
  const pair =
    grantee !== undefined && kept !== undefined
      ? { integration: grantee.metadata.name, target: { kind, name: kept.metadata.name } }
      : namesInBlocks(caches.by('Block', 'integrationId', integration), { namespace, target });
  if (pair === undefined) return { status: 204 };
  const object = { namespace, name: blockObjectName(namespace, pair.integration, kind, pair.target.name) };
  const others = await readOthers(facade, namespace, pair, object.name);
  if (others.length > 0) {
    const names = others.map(({ metadata }) => metadata.name).toSorted();
    const detail = `No changes were made. Delete the Block ${names.join(', ')} in the namespace ${namespace} with the tool that manages it.`;
    throw new Refusal('managed_elsewhere', detail);
  }
  const own = await caches.live('Block', object);
  if (own !== undefined) {
    assertNotManagedElsewhere('Block', own, FIELD_MANAGER.facade, 'target');
    await writer.remove('Block', own);
  }
  return { status: 204, about: { kind: 'Block', ...object } };
}

const UNTIL_WHEN =
  'After this request returns, Sluice no longer routes events of the target to the integration and starts no new attempts for them. Sluice keeps the events until their retention period ends.';
const STANDING =
  'Another tool may already manage a Block with the same target and integration. If a new Block would be rejected, the call relies on that Block and returns a 204. Events are then routed again once that tool deletes its Block. To find the Blocks of a target, see `objects` in GET /waas/producer/{tenant}/integrations/{integration}/blocks.';
const RESUMES =
  "If there are no other blocks, subscriptions resume at their previous position shortly after the response. The response is the same if the target isn't blocked.";

const blockStream = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/integrations/{integration}/blocks/streams/{catalogEntryPublicId}',
  access: 'producer',
  scope: 'waas:write',
  operation: 'blockStream',
  tag: 'Blocks',
  summary: 'Block a stream for an integration',
  description: `${UNTIL_WHEN} ${STANDING} A new Block is rejected if the account has reached its limit.`,
  closes: true,
  answers: { 204: { description: 'The block of the stream is in force.' } },
  problems: ['unknown_resource', 'limit_reached'],
  handle: (facade, { tenant, params: { integration, catalogEntryPublicId: target } }) =>
    block(facade, { namespace: tenant.name, integration, kind: 'CatalogStream', target }),
});

const unblockStream = defineRoute({
  method: 'DELETE',
  path: '/waas/producer/{tenant}/integrations/{integration}/blocks/streams/{catalogEntryPublicId}',
  access: 'producer',
  scope: 'waas:write',
  operation: 'unblockStream',
  tag: 'Blocks',
  summary: 'Unblock a stream for an integration',
  description: `${RESUMES} Blocks on packages that include the stream remain.`,
  answers: { 204: { description: 'The block has been removed or did not exist.' } },
  problems: ['managed_elsewhere'],
  handle: (facade, { tenant, params: { integration, catalogEntryPublicId: target } }) =>
    unblock(facade, { namespace: tenant.name, integration, kind: 'CatalogStream', target }),
});

const blockPackage = defineRoute({
  method: 'POST',
  path: '/waas/producer/{tenant}/integrations/{integration}/blocks/packages/{pkg}',
  access: 'producer',
  scope: 'waas:write',
  operation: 'blockPackage',
  tag: 'Blocks',
  summary: 'Block a package for an integration',
  description: `Blocks every stream in the package, including any that are added at a later time. ${UNTIL_WHEN} ${STANDING} A new Block is rejected if the package is archived or is being deleted. The limits of the account do not apply.`,
  closes: true,
  answers: { 204: { description: 'The block of the package is in force.' } },
  problems: ['unknown_resource', 'package_archived'],
  handle: (facade, { tenant, params: { integration, pkg: target } }) =>
    block(facade, { namespace: tenant.name, integration, kind: 'Package', target }),
});

const unblockPackage = defineRoute({
  method: 'DELETE',
  path: '/waas/producer/{tenant}/integrations/{integration}/blocks/packages/{pkg}',
  access: 'producer',
  scope: 'waas:write',
  operation: 'unblockPackage',
  tag: 'Blocks',
  summary: 'Unblock a package for an integration',
  description: `${RESUMES} Blocks on individual streams or on other packages remain.`,
  answers: { 204: { description: 'The block has been removed or did not exist.' } },
  problems: ['managed_elsewhere'],
  handle: (facade, { tenant, params: { integration, pkg: target } }) =>
    unblock(facade, { namespace: tenant.name, integration, kind: 'Package', target }),
});

const listBlocks = defineRoute({
  method: 'GET',
  path: '/waas/producer/{tenant}/integrations/{integration}/blocks',
  access: 'producer',
  scope: 'waas:read',
  operation: 'listBlocks',
  tag: 'Blocks',
  summary: 'List all blocks for an integration',
  query: PageQuery,
  answers: { 200: { description: 'A list of blocks, sorted by public id.', schema: pageOf(BlockEntry) } },
  problems: ['unknown_resource', 'malformed_cursor'],
  async handle({ caches }, { tenant, params, query }) {
    await findOwned(caches, 'Integration', tenant.name, params.integration);
    const groups = groupBlocks(caches.by('Block', 'integrationId', params.integration));
    const { data, nextCursor } = paginate(['blocks', params.integration], groups, ([publicId]) => publicId, query);
    return { status: 200, body: { data: data.map(([, group]) => blockEntry(group)), nextCursor } };
  },
});

export const BLOCK_ROUTES = [blockStream, unblockStream, blockPackage, unblockPackage, listBlocks];

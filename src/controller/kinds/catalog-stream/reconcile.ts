import type { CatalogStreamStatus } from '../../../api/kinds/catalog-stream.ts';
import { generationOf, tenantId } from '../../../core/ids/ids.ts';
import type { AnyObject } from '../../../kube/object.ts';
import { NAMESPACES } from '../../../kube/resource.ts';
import type { Cached } from '../../caches/caches.ts';
import { LET_GO_AFTER_MS, type Room } from '../../context/context.ts';
import type { Finalization } from '../../engine/outcome.ts';
import { planDraining, planStream, type StreamFacts } from './plan.ts';

function factsOf(
  { world }: Room,
  { metadata, spec }: Cached<'CatalogStream'>,
): StreamFacts & { workspaceExists: boolean } {
  const namespace = metadata.namespace as string;
  return {
    namespace,
    name: metadata.name,
    published: spec.public === true,
    workspaceExists: world.Workspace.store.get(namespace) !== undefined,
  };
}

export function reconcileStream(room: Room) {
  return async (stream: Cached<'CatalogStream'>) => {
    const facts = factsOf(room, stream);
    if (facts.workspaceExists) await room.tenants.inForce(facts.namespace, stream);
    return planStream(facts);
  };
}

/**
 * Closes a stream that is being deleted. With Retain it is removed once everything is delivered, with Delete at once.
 * The finalizer is also removed if the namespace is being deleted, or if Redis does not answer for a minute.
 */
export function finalizeStream(room: Room) {
  return async (stream: Cached<'CatalogStream'>): Promise<Finalization<CatalogStreamStatus>> => {
    const facts = factsOf(room, stream);
    const { namespace, name } = facts;
    const tenant = tenantId(namespace);
    try {
      await room.tenants.inForce(namespace, stream);
      if (stream.spec.deletionPolicy === 'Retain') {
        const drain = await room.control.readDrain(tenant, name);
        if (drain.unrouted + drain.open > 0) {
          const home = await room.client.get<AnyObject>(NAMESPACES, { name: namespace });
          return home === undefined || home.metadata.deletionTimestamp !== undefined
            ? 'done'
            : planDraining(facts, drain);
        }
      }
      const { uid } = stream.metadata;
      await room.tenants.remove(namespace, uid, fence =>
        room.control.dropQueue(fence, tenant, name, generationOf(uid)),
      );
    } catch (error) {
      if (room.deletingForMs(stream) < LET_GO_AFTER_MS) throw room.explain(error);
      room.tellLetGo('CatalogStream', stream);
    }
    return 'done';
  };
}

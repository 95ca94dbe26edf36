import { pairIsOpen } from '../core/activation-state.ts';
import { compileRoutes } from '../core/compile-routes.ts';
import type { GateFacts } from '../core/gate-verdict.ts';
import { activationId, publicId } from '../core/ids.ts';
import { routeState } from '../core/integration-state.ts';
import { isProtected, snapshotOf, snapshotOfIntegration, snapshotOfSubscription } from '../core/snapshot-of.ts';
import type { Cached } from './cached.ts';
import type { OwnedTenant } from './ownership.ts';
import { integrationStatus } from './resources/integration-entry.ts';
import type { World } from './world.ts';

/** State of an integration as the routes know it. */
export function integrationRoute(integration: Cached<'Integration'>, nowMs: number): GateFacts['integration'] {
  return routeState(integrationStatus(integration, nowMs));
}

/** What is asked about: one stream, one integration, one group key. */
interface Question {
  readonly tenant: OwnedTenant;
  readonly stream: Cached<'CatalogStream'>;
  readonly integration: Cached<'Integration'>;
  readonly groupKey: string | undefined;
  readonly nowMs: number;
}

/** What the objects say of a gate, and the subscription (`sub_…`) that is admitted, by the very rules of the controller. */
export interface GateOfObjects extends GateFacts {
  readonly subscriptionId: string | undefined;
}

/** The gate as the custom resources want it, by what the caches hold. */
export function gateOfObjects(world: Pick<World, 'by'>, question: Question): GateOfObjects {
  const { tenant, stream, integration, groupKey, nowMs } = question;
  const name = integration.metadata.name;
  const subscriptions = world
    .by('Subscription', 'integration', `${tenant.name}/${name}`)
    .filter(object => object.spec.stream === stream.metadata.name && isProtected(object));
  const { verdicts } = compileRoutes(
    {
      name: tenant.name,
      ...(tenant.workspace.metadata.deletionTimestamp === undefined ? { workspace: tenant.workspace } : {}),
      secretKeys: [],
      streams: isProtected(stream) ? [snapshotOf(stream)] : [],
      packages: world.by('Package', 'stream', `${tenant.name}/${stream.metadata.name}`).map(snapshotOf),
      blocks: world.by('Block', 'integration', `${tenant.name}/${name}`).map(snapshotOf),
      integrations: [snapshotOfIntegration(integration)],
      subscriptions: subscriptions.map(snapshotOfSubscription),
    },
    // Whether an endpoint may be called decides about sending, not about routing.
    { nowMs, queueMaxBytes: 0, judgeEndpoint: () => 'ok', sealEndpoint: () => '' },
  );
  const admitted = subscriptions.find(({ metadata }) => verdicts.get(metadata.uid)?.ready === 'Admitted');
  const live = admitted === undefined ? undefined : verdicts.get(admitted.metadata.uid)?.live;
  const pair = world.by('Activation', 'publicId', activationId(tenant.name, name, groupKey ?? ''));
  return {
    groupKey,
    integration: integrationRoute(integration, nowMs),
    activated: pairIsOpen(
      pair.map(({ metadata, spec }) => ({
        revoked: spec.revoked === true,
        deleting: metadata.deletionTimestamp !== undefined,
      })),
    ),
    subscription:
      live === undefined ? 'none' : live === 'Blocked' ? 'stream_blocked' : live === 'Suspended' ? 'suspended' : 'open',
    subscriptionId:
      admitted === undefined
        ? undefined
        : publicId('Subscription', admitted.metadata.namespace ?? '', admitted.metadata.name),
  };
}

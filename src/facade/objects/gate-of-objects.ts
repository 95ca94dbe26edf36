import { keyRingOf } from '../../core/delivery/key-ring.ts';
import { activationId, publicId } from '../../core/ids/ids.ts';
import { pairIsOpen } from '../../core/routing/activation-state.ts';
import { compileRoutes } from '../../core/routing/compile-routes.ts';
import { coveringStream } from '../../core/routing/coverage.ts';
import type { GateFacts } from '../../core/routing/gate-verdict.ts';
import { integrationStatus, routeState } from '../../core/routing/integration-state.ts';
import type { BlockSnapshot } from '../../core/routing/snapshot.ts';
import {
  isProtected,
  snapshotOf,
  snapshotOfIntegration,
  snapshotOfSubscription,
} from '../../core/routing/snapshot-of.ts';
import type { SubscriptionVerdict } from '../../core/routing/subscription-route.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';
import { publicIdOf } from '../caches/indexes.ts';
import type { OwnedTenant } from './ownership.ts';

/** Returns the integration state used for routing. */
export function integrationRoute(integration: Cached<'Integration'>, nowMs: number): GateFacts['integration'] {
  return routeState(integrationStatus(integration, nowMs));
}

/** Question identifies a gate by stream, integration, and group key. */
interface Question {
  readonly tenant: OwnedTenant;
  readonly stream: Cached<'CatalogStream'>;
  readonly integration: Cached<'Integration'>;
  readonly groupKey: string | undefined;
  readonly nowMs: number;
}

/**
 * Facts about a gate, and the admitted subscription (`sub_…`). Derived from the objects using the controller's own
 * rules.
 */
interface GateOfObjects extends GateFacts {
  readonly subscriptionId: string | undefined;
}

/**
 * Returns whether a subscription is routed, or the reason why it is held.
 *
 * @param covering all Blocks that cover it
 */
function routing(
  live: SubscriptionVerdict['live'] | undefined,
  covering: readonly BlockSnapshot[],
): GateFacts['subscription'] {
  if (live === undefined) return 'none';
  if (live === 'Suspended') return 'suspended';
  if (live === 'SpecRefused') return 'paused';
  if (live !== 'Blocked') return 'open';
  return covering.some(({ spec }) => spec.target.kind === 'CatalogStream') ? 'blocked_stream' : 'blocked_package';
}

/** Secrets affect delivery but not routing either. */
const NO_KEYS = keyRingOf(new Uint8Array(32));

/**
 * Returns the Blocks that cover the stream for the integration, and the packages that contain the stream. Their other
 * streams are left out because a producer can have thousands of packages with hundreds of streams.
 */
function coveringObjects(caches: Pick<Caches, 'by'>, { tenant, stream, integration }: Question) {
  const { name } = stream.metadata;
  const containing = caches.by('Package', 'stream', `${tenant.name}/${name}`);
  const names = new Set(containing.map(({ metadata }) => metadata.name));
  const ofIntegration = caches.by('Block', 'integrationId', publicIdOf('Integration', integration));
  const blocks = coveringStream(ofIntegration, name, names);
  const blocked = new Set(blocks.map(({ spec }) => spec.target.name));
  const packages = containing
    .filter(({ metadata }) => blocked.has(metadata.name))
    .map(object => ({ ...snapshotOf(object), spec: { ...object.spec, streams: [name] } }));
  return { packages, blocks: blocks.map(snapshotOf) };
}

/** Returns the gate according to the cached custom resources. */
export function gateOfObjects(caches: Pick<Caches, 'by'>, question: Question): GateOfObjects {
  const { tenant, stream, integration, groupKey, nowMs } = question;
  const name = integration.metadata.name;
  const subscriptions = caches
    .by('Subscription', 'integration', `${tenant.name}/${name}`)
    .filter(object => object.spec.stream === stream.metadata.name && isProtected(object));
  const { packages, blocks } = coveringObjects(caches, question);
  const { verdicts } = compileRoutes(
    {
      name: tenant.name,
      ...(tenant.workspace.metadata.deletionTimestamp === undefined ? { workspace: tenant.workspace } : {}),
      secretKeys: [],
      streams: isProtected(stream) ? [snapshotOf(stream)] : [],
      packages,
      blocks,
      integrations: [snapshotOfIntegration(integration)],
      subscriptions: subscriptions.map(snapshotOfSubscription),
    },
    // Endpoint checks affect delivery but not routing, so skip them here.
    { nowMs, queueMaxBytes: 0, judgeEndpoint: () => 'ok', sealEndpoint: () => '', openHeader: () => '', keys: NO_KEYS },
  );
  const admitted = subscriptions.find(({ metadata }) => verdicts.get(metadata.uid)?.ready === 'Admitted');
  const live = admitted === undefined ? undefined : verdicts.get(admitted.metadata.uid)?.live;
  const pair = caches.by('Activation', 'publicId', activationId(tenant.name, name, groupKey ?? ''));
  return {
    groupKey,
    integration: integrationRoute(integration, nowMs),
    activated: pairIsOpen(
      pair.map(({ metadata, spec }) => ({
        revoked: spec.revoked === true,
        deleting: metadata.deletionTimestamp !== undefined,
      })),
    ),
    subscription: routing(live, blocks),
    subscriptionId:
      admitted === undefined
        ? undefined
        : publicId('Subscription', admitted.metadata.namespace ?? '', admitted.metadata.name),
  };
}

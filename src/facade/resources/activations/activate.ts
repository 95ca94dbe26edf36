import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { activationId, publicId } from '../../../core/ids/ids.ts';
import { activationObjectName } from '../../../core/ids/object-names.ts';
import { integrationStatus, routeState } from '../../../core/routing/integration-state.ts';
import { Refusal, refuseBecause } from '../../../http/refusal.ts';
import type { ObjectName } from '../../../kube/object.ts';
import { sleep } from '../../../time/clock.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import { isLimit } from '../../objects/limit-guard.ts';
import { unknownObject } from '../../objects/owned-objects.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { judgeActivation } from './activation-views.ts';

/** The maximum time a call waits for the gate even if the controller hasn't set a condition. */
export const GATE_WITHIN_MS = 5_000;
/** The interval for reading the gate from Redis. */
export const GATE_EVERY_MS = 100;

/** Activation fields managed by the REST interface. Every write must include these fields. */
export const ACTIVATION_CONCERN = ['integration', 'groupKey', 'revoked'] as const;

/** Returns true if Redis will allow events for this pair. @throws Refusal 503 if Redis is not reachable */
export async function gateIs(
  state: 'open' | 'closed',
  { gates }: Facade,
  ...pair: [tenant: string, integration: string, groupKey: string]
): Promise<boolean> {
  try {
    return await (state === 'open' ? gates.isOpen(...pair) : gates.isClosed(...pair));
  } catch (cause) {
    throw new Refusal('unavailable', { cause });
  }
}

/** Returns an applied object from the cache if it is recent enough. If it is not, returns the known version. */
export function latestOf({ caches }: Facade, known: Cached<'Activation'>): Cached<'Activation'> {
  const { namespace, name, uid, generation = 0 } = known.metadata;
  const cached = caches.get('Activation', { namespace, name });
  return cached?.metadata.uid === uid && (cached.metadata.generation ?? 0) >= generation ? cached : known;
}

/**
 * Rejects the call if the API server confirms that the integration is closed.
 *
 * @throws Refusal 409 `integration_closed`
 */
async function refuseIfClosed({ caches, wallMs }: Facade, integration: Cached<'Integration'>): Promise<void> {
  if (routeState(integrationStatus(integration, wallMs())) !== 'closed') return;
  const live = await caches.live('Integration', integration.metadata);
  if (live === undefined) throw unknownObject('Integration');
  const state = integrationStatus(live, wallMs());
  if (routeState(state) === 'closed') throw refuseBecause('integration_closed', `The integration is ${state}.`);
}

/**
 * Rejects the call if other Activations have revoked the pair, including their names in the response.
 *
 * @throws Refusal 409 `revoked_elsewhere`
 */
async function refuseIfRevokedElsewhere({ caches }: Facade, { metadata, spec }: Cached<'Activation'>): Promise<void> {
  const { namespace = '', name } = metadata;
  const id = activationId(namespace, spec.integration, spec.groupKey);
  const others = caches
    .by('Activation', 'publicId', id)
    .filter(other => other.metadata.name !== name && other.spec.revoked === true);
  const live = await Promise.all(others.map(other => caches.live('Activation', other.metadata)));
  const names = live.flatMap(object => (object?.spec.revoked === true ? [object.metadata.name] : [])).toSorted();
  if (names.length === 0) return;
  const detail = `The activation is revoked by ${names.join(', ')} in the namespace ${namespace}. Set revoked to false or delete the object.`;
  throw new Refusal('revoked_elsewhere', detail);
}

/**
 * Returns an Activation that is owned by another manager and already opens the pair. In this case, we don't need to
 * create a new one.
 */
async function standingFor({ caches }: Facade, own: ObjectName, integration: string, groupKey: string) {
  const { namespace = '' } = own;
  for (const { metadata } of caches.by('Activation', 'publicId', activationId(namespace, integration, groupKey))) {
    const live = metadata.namespace === namespace ? await caches.live('Activation', metadata) : undefined;
    if (live !== undefined && live.metadata.deletionTimestamp === undefined && live.spec.revoked !== true) return live;
  }
  return undefined;
}

/**
 * Opens a group key for an integration. Applies the Activation managed by REST, then waits until both the condition and
 * Redis show that the gate is open. We can't rely on the condition alone: Redis may have been flushed after it was set.
 *
 * @throws Refusal 409, 503
 */
export async function activate(
  facade: Facade,
  tenant: OwnedTenant,
  integration: Cached<'Integration'>,
  groupKey: string,
): Promise<Cached<'Activation'>> {
  const { caches, writer, clock } = facade;
  const untilMs = clock.nowMs() + GATE_WITHIN_MS;
  await refuseIfClosed(facade, integration);
  const { name } = integration.metadata;
  const integrationId = publicId('Integration', tenant.name, name);
  const object = { namespace: tenant.name, name: activationObjectName(tenant.name, name, groupKey) };
  const applied = await writer.edit(async () => {
    try {
      return await writer.apply('Activation', object, {
        manager: FIELD_MANAGER.facade,
        before: await caches.live('Activation', object),
        concern: ACTIVATION_CONCERN,
        // Don't set `revoked` to false: a copy of the object in Git would then own this field, preventing the DELETE.
        spec: { integration: name, groupKey },
      });
    } catch (error) {
      const standing = isLimit(error) ? await standingFor(facade, object, name, groupKey) : undefined;
      if (standing === undefined) throw error;
      return standing;
    }
  });
  let activation = await writer.waitFor('Activation', applied);
  for (;;) {
    const judgement = judgeActivation(activation, applied.metadata.generation ?? 0);
    if (judgement === 'superseded') throw new Refusal('superseded');
    if (judgement === 'revoked_elsewhere') await refuseIfRevokedElsewhere(facade, activation);
    if (judgement === 'integration_closed') await refuseIfClosed(facade, integration);
    if (judgement === 'open' && (await gateIs('open', facade, tenant.publicId, integrationId, groupKey)))
      return activation;
    if (clock.nowMs() >= untilMs) {
      throw new Refusal('not_in_force', 'The activation has been stored, but its gate is not open yet. Try again.');
    }
    await sleep(clock, GATE_EVERY_MS);
    activation = latestOf(facade, activation);
  }
}

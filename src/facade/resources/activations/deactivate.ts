import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { activationId } from '../../../core/ids/ids.ts';
import { activationObjectName } from '../../../core/ids/object-names.ts';
import { Refusal } from '../../../http/refusal.ts';
import { sleep } from '../../../time/clock.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Facade } from '../../objects/facade.ts';
import type { OwnedTenant } from '../../objects/ownership.ts';
import { conditionFor } from '../../objects/wait.ts';
import { ACTIVATION_CONCERN, GATE_EVERY_MS, GATE_WITHIN_MS, gateIs, latestOf } from './activate.ts';

/** Returns the name of a deleted integration that still has Activations in this workspace. */
function goneIntegration({ caches }: Facade, namespace: string, id: string): string | undefined {
  const [activation] = caches.by('Activation', 'integrationId', id);
  return activation?.metadata.namespace === namespace ? activation.spec.integration : undefined;
}

/** Returns true if this pair has another Activation that is not managed by REST. */
async function hasOthers({ caches }: Facade, namespace: string, id: string, own: string): Promise<boolean> {
  for (const { metadata } of caches.by('Activation', 'publicId', id)) {
    if (metadata.namespace !== namespace || metadata.name === own) continue;
    if ((await caches.live('Activation', metadata)) !== undefined) return true;
  }
  return false;
}

/**
 * Closes a group key for an integration. Revokes the Activation managed by REST, which takes precedence over all other
 * Activations. Waits until the gate is closed in Redis, or until a later activation has replaced this call. An
 * Activation deleted shortly before is handled in the same way. Returns the object that was written. Undefined if the
 * pair was not active.
 *
 * @throws Refusal 503
 */
export async function deactivate(
  facade: Facade,
  tenant: OwnedTenant,
  integrationId: string,
  groupKey: string,
): Promise<Cached<'Activation'> | undefined> {
  const { caches, writer, clock } = facade;
  const untilMs = clock.nowMs() + GATE_WITHIN_MS;
  const namespace = tenant.name;
  const found = await caches.find('Integration', integrationId, namespace);
  const integration = found?.metadata.name ?? goneIntegration(facade, namespace, integrationId);

  async function revoke(name: string): Promise<Cached<'Activation'> | undefined> {
    const object = { namespace, name: activationObjectName(namespace, name, groupKey) };
    const applied = await writer.edit(async () => {
      const before = await caches.live('Activation', object);
      const id = activationId(namespace, name, groupKey);
      if (before === undefined && !(await hasOthers(facade, namespace, id, object.name))) return undefined;
      return writer.apply('Activation', object, {
        manager: FIELD_MANAGER.facade,
        before,
        concern: ACTIVATION_CONCERN,
        spec: { integration: name, groupKey, revoked: true },
      });
    });
    // Activations of a deleted integration are never ready, so this must not wait for them.
    if (applied === undefined || found === undefined) return applied;
    try {
      return await writer.waitFor('Activation', applied);
    } catch (error) {
      // The Activation was deleted in the meantime. This also closes the gate unless there are other Activations.
      if (error instanceof Refusal && error.code === 'changed_meanwhile') return undefined;
      throw error;
    }
  }

  let revoked: Cached<'Activation'> | undefined;
  for (;;) {
    if (revoked !== undefined) revoked = latestOf(facade, revoked);
    else if (integration !== undefined) revoked = await revoke(integration);
    if (revoked !== undefined && revoked.spec.revoked !== true) return revoked;
    const judged =
      revoked === undefined || conditionFor(revoked, 'Ready', revoked.metadata.generation ?? 0) !== undefined;
    if (judged && (await gateIs('closed', facade, tenant.publicId, integrationId, groupKey))) return revoked;
    if (clock.nowMs() >= untilMs) throw new Refusal('not_in_force', 'The gate is not closed yet. Try again.');
    await sleep(clock, GATE_EVERY_MS);
  }
}

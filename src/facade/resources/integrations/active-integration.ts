import { integrationStatus } from '../../../core/routing/integration-state.ts';
import { refuseBecause } from '../../../http/refusal.ts';
import type { Facade } from '../../objects/facade.ts';
import { isGrantedTo, type OwnedIntegration } from '../../objects/ownership.ts';

/**
 * Refuses changes if the integration has ended according to the API server.
 *
 * @throws Refusal 409 `integration_not_active`
 */
export async function assertActive(
  { caches, wallMs }: Pick<Facade, 'caches' | 'wallMs'>,
  { object, producer, name, recipient }: Pick<OwnedIntegration, 'object' | 'producer' | 'name' | 'recipient'>,
): Promise<void> {
  if (integrationStatus(object, wallMs()) === 'Active') return;
  const live = await caches.live('Integration', { namespace: producer, name });
  const status = isGrantedTo(live, recipient.name) ? integrationStatus(live, wallMs()) : 'gone';
  if (status !== 'Active') throw refuseBecause('integration_not_active', `The integration is ${status}.`);
}

import type { ModelEvent, Receiver } from '../state/expectation.ts';
import { priceOf } from '../state/replay-price.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { hold } from '../state/violation.ts';

function* waitingFor(tenant: ModelTenant, receiver: Receiver): Generator<ModelEvent> {
  if (tenant.defined().subscriptions.get(receiver.uid)?.route !== 'open') return;
  for (const { event, may } of receiver.undecided.values()) if (!may.has('refuse')) yield event;
}

/**
 * Returns whether an event of the stream costs more than the remaining tokens for all integrations still waiting for
 * it. In this case, later events have to wait as well.
 */
function isShort(tenant: ModelTenant, stream: string, left: number): boolean {
  const costs = new Map<string, number>();
  for (const receiver of tenant.receivers.values()) {
    if (receiver.stream !== stream) continue;
    for (const event of waitingFor(tenant, receiver)) {
      costs.set(event.ref, (costs.get(event.ref) ?? 0) + priceOf(event));
    }
  }
  return [...costs.values()].some(cost => cost > left);
}

/**
 * Checks that, if there is no work left, the only waiting events are held back or cost more than the account has left.
 * @param left tokens that may be spent for the tenant's events
 */
export function checkSettled(tenant: ModelTenant, left: number): void {
  const short = new Set(tenant.names.streams.filter(stream => isShort(tenant, stream, left)));
  for (const receiver of tenant.receivers.values()) {
    const who = `${tenant.name}'s ${receiver.name}`;
    const [waits] = short.has(receiver.stream) ? [] : waitingFor(tenant, receiver);
    hold(8, waits === undefined, () => `${waits?.name} never came to ${who}`);
    if (tenant.defined().subscriptions.get(receiver.uid)?.sends !== true || receiver.disabled === true) continue;
    for (const { event } of receiver.open.values()) {
      const active = tenant.defined().gates.has(`${receiver.integration}/${event.groupKey}`);
      hold(13, !active, () => `${event.name} is never delivered to ${who}`);
    }
  }
}

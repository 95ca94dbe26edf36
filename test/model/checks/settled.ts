import { inboxMember } from '../../../src/redis/inbox-store.ts';
import { queueKeys } from '../../../src/redis/keys.ts';
import { wokenMember } from '../../../src/redis/queue-store.ts';
import type { ModelEvent, Receiver } from '../state/expectation.ts';
import type { RedisDump } from '../state/redis-dump.ts';
import { priceOf } from '../state/replay-price.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { hold } from '../state/violation.ts';

/** Only subscriptions that are held lie behind. */
function checkQueues(tenant: ModelTenant, dump: RedisDump, isShort: (stream: string) => boolean): void {
  for (const stream of tenant.names.streams) {
    const q = queueKeys(tenant.id, stream);
    for (const [member, what] of [
      ...(dump.sets.get(q.wake) ?? []).map(entry => [wokenMember(entry), 'waits to be caught up'] as const),
      ...Object.keys(dump.hashes.get(q.behind) ?? {}).map(each => [each, 'is behind'] as const),
    ]) {
      const receiver = [...tenant.receivers.values()].find(each => member === inboxMember(tenant.inboxOf(each)));
      const route = tenant.defined().subscriptions.get(receiver?.uid ?? '')?.route;
      hold(
        25,
        route === 'paused' || isShort(stream),
        () => `${tenant.name}'s ${receiver?.name} ${what} in ${stream}, and is ${route ?? 'gone'}`,
      );
    }
  }
}

/** What an event that is not routed yet would cost for all that may still get it, at most. */
function costOf(tenant: ModelTenant, event: ModelEvent): number {
  let tokens = 0;
  for (const receiver of tenant.receivers.values()) {
    const open = tenant.defined().subscriptions.get(receiver.uid)?.route === 'open';
    const active = tenant.defined().gates.has(`${receiver.integration}/${event.groupKey}`);
    if (open && active && receiver.undecided.get(event.ref)?.event === event) tokens += priceOf(event);
  }
  return tokens;
}

/** The first event of each stream that costs more than there is: what comes after it waits, too. */
function firstUnpaid(tenant: ModelTenant, left: number): Map<string, string> {
  const first = new Map<string, string>();
  for (const event of tenant.events) {
    const current = tenant.defined().streams.get(event.stream)?.uid === event.streamUid;
    if (current && !first.has(event.stream) && costOf(tenant, event) > left) first.set(event.stream, event.ref);
  }
  return first;
}

function checkReceiver(tenant: ModelTenant, receiver: Receiver, unpaid: string | undefined, isPaused: boolean): void {
  const subscription = tenant.defined().subscriptions.get(receiver.uid);
  if (subscription?.route === 'open') {
    const left = [...receiver.undecided.values()].find(
      // Of a stream that waits for tokens, those that were refused stand before the first that is not paid.
      // So do those that met a gate that was half closed in a pause: nobody looks at them again before it ends.
      ({ event, maybe }) =>
        event.acknowledged &&
        !(isPaused && maybe.has(false)) &&
        !(unpaid !== undefined && (event.ref >= unpaid || maybe.has(false))),
    );
    hold(8, left === undefined, () => `${left?.event.name} never came to ${tenant.name}'s ${receiver.name}`);
  }
  if (subscription?.sends !== true || receiver.disabled === true) return;
  for (const { event } of receiver.open.values()) {
    const active = tenant.defined().gates.has(`${receiver.integration}/${event.groupKey}`);
    hold(13, !active, () => `${event.name} is never delivered to ${tenant.name}'s ${receiver.name}`);
  }
}

/**
 * When nothing is left to do: nothing lies behind but what is held back, or costs more than its account has.
 *
 * @param left tokens that may be spent for the tenant's events
 */
export function checkSettled(tenant: ModelTenant, dump: RedisDump, left: number, isPaused = false): void {
  const unpaid = firstUnpaid(tenant, left);
  checkQueues(tenant, dump, stream => unpaid.has(stream));
  for (const receiver of tenant.receivers.values())
    checkReceiver(tenant, receiver, unpaid.get(receiver.stream), isPaused);
}

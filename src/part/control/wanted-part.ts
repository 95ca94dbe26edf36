import { valueWithoutRoom } from '../../core/routing/route-limits.ts';
import type { QueueRoute, SubscriptionRoute, TenantRoutes } from '../../core/routing/routes.ts';
import { queueFields, subscriptionFields } from '../../record/control-plan.ts';
import type { Steps } from '../../time/slices.ts';
import type { MetaField } from '../gate/gate.ts';
import type { SubscriptionRow } from '../gate/subscription-row.ts';
import { PART_NUMBER, type Part, slotOf } from '../keys.ts';
import { NO_REF } from '../lanes/ref.ts';

/** The desired state of a subscription in a part. */
export interface WantedSlot {
  /** `int_…` */
  readonly integration: string;
  readonly row: SubscriptionRow;
  /** The text returned by `sealSlotEndpoint`. Empty if there is no endpoint. */
  readonly endpoint: string;
  /** Handling of the backlog once the Blocks end. If there is no Block, this is undefined. */
  readonly onUnblock: SubscriptionRoute['onUnblock'];
}

/** A part's desired state. */
export interface WantedPart {
  readonly part: Part;
  /** The fields of `meta` which are owned by the controller, except for `gen` and `ready`. */
  readonly meta: Readonly<Partial<Record<MetaField, string>>>;
  /** By slot. */
  readonly slots: ReadonlyMap<string, WantedSlot>;
}

export function partOf(tenant: string, queue: string, { gen }: Pick<QueueRoute, 'gen'>): Part {
  return { tenant, queue, gen, number: PART_NUMBER };
}

const limitText = (limit: number | undefined) => (limit === undefined ? '' : String(limit));

function metaOf(route: QueueRoute, { payer, plan, eventsPerSecond, storedBytes }: TenantRoutes): WantedPart['meta'] {
  const { gen: _, ...fields } = queueFields(route);
  const limits = { eventsPerSecond: limitText(eventsPerSecond), storedMax: limitText(storedBytes) };
  return { ...(fields as Partial<Record<MetaField, string>>), payer, plan, ...limits };
}

/** Returns the route without anything that might not have room in a part. */
function closedRoute(route: SubscriptionRoute): SubscriptionRoute {
  const { maxPerSecond: _most, enabledMs: _ms, onUnblock: _how, ...rest } = route;
  return { ...rest, route: 'closed', send: 'held', cap: 1, endpoint: '' };
}

function slotFor(
  { tenant }: TenantRoutes,
  [integration, isActive]: readonly [string, boolean],
  [sub, recorded]: readonly [string, SubscriptionRoute],
): WantedSlot {
  // A damaged record must not prevent all other changes to the part.
  const route = valueWithoutRoom(recorded) === undefined ? recorded : closedRoute(recorded);
  return {
    integration,
    onUnblock: route.onUnblock,
    // The secret parts are bound to the subscription, so they stay as they are.
    endpoint: route.endpoint === '' ? '' : `${sub}.${route.inc} ${route.endpoint}`,
    row: {
      route: isActive ? route.route : 'closed',
      send: route.send,
      unordered: route.unordered,
      cap: route.cap,
      ...(route.maxPerSecond === undefined ? {} : { maxPerSecond: route.maxPerSecond }),
      ...(route.enabledMs === undefined ? {} : { enabledMs: route.enabledMs }),
      since: NO_REF,
      cfgv: subscriptionFields(tenant, route).cfgv as string,
      integration,
    },
  };
}

/** Returns the parts for the tenant routes, by the stream name. There is a piece for each subscription. */
export function* wantedParts(routes: TenantRoutes): Steps<Map<string, WantedPart>> {
  const parts = new Map<string, WantedPart & { readonly slots: Map<string, WantedSlot> }>();
  for (const [queue, route] of Object.entries(routes.queues)) {
    parts.set(queue, { part: partOf(routes.tenant, queue, route), meta: metaOf(route, routes), slots: new Map() });
  }
  for (const [integration, { state, subscriptions }] of Object.entries(routes.integrations)) {
    for (const [sub, route] of Object.entries(subscriptions)) {
      yield;
      const slot = slotFor(routes, [integration, state === 'active'], [sub, route]);
      parts.get(route.queue)?.slots.set(slotOf(sub, route.inc), slot);
    }
  }
  return parts;
}

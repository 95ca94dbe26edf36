import { type EndpointHealth, parseEndpointHealth } from '../../../core/delivery/endpoint-health.ts';
import { keyOf } from '../../../kube/object.ts';
import type { InboxRef } from '../../../plane/inbox-ref.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import { findCondition } from '../../engine/conditions.ts';

export interface EndpointHealthsDeps {
  /** Reads the health stored in Redis. Returns undefined if the field does not exist. */
  readonly read: (inbox: InboxRef) => Promise<string | undefined>;
  /**
   * Called when a subscription's (`sub_…`) health changes. Also called with `first` set to true when an endpoint is
   * found to be working for the first time.
   */
  readonly onNews: (sub: string, first: boolean) => void;
  readonly log: Pick<Logger, 'debug'>;
}

/**
 * Returns true if the status has EndpointFailing=True, which is the only case where a working endpoint requires a
 * status update.
 */
function showsFailing({ status }: Cached<'Subscription'>): boolean {
  return findCondition(status?.conditions, 'EndpointFailing')?.status === 'True';
}

/**
 * Keeps the health of all endpoints that are failing or disabled. Health is determined by the data plane, which
 * publishes a message when it disables an endpoint. All other changes and lost messages are detected by the audit,
 * which regularly reads every endpoint.
 */
export function createEndpointHealths({ read, onNews, log }: EndpointHealthsDeps) {
  /** Undefined if the endpoint is working. */
  const known = new Map<string, EndpointHealth | undefined>();

  function note(sub: string, text: string | undefined): void {
    const first = !known.has(sub);
    const before = known.get(sub);
    const now = parseEndpointHealth(text);
    known.set(sub, now);
    const changed = before?.sinceMs !== now?.sinceMs || before?.disabled?.ms !== now?.disabled?.ms;
    if (first || changed) onNews(sub, first && now === undefined);
  }

  return {
    /**
     * Returns the endpoint health, or undefined if the endpoint is working. The health is only read from Redis if the
     * endpoint was not working before.
     */
    async current(inbox: InboxRef): Promise<EndpointHealth | 'unknown' | undefined> {
      if (!known.has(inbox.sub)) return 'unknown';
      if (known.get(inbox.sub) === undefined) return undefined;
      const health = parseEndpointHealth(await read(inbox));
      known.set(inbox.sub, health);
      return health;
    },
    /** Handles a message from the data plane saying that the endpoint was disabled. */
    onDisabled(inbox: InboxRef): void {
      read(inbox).then(
        text => note(inbox.sub, text),
        (err: unknown) => log.debug({ err }, 'failed to read endpoint health'),
      );
    },
    /**
     * Processes the results of the audit for a tenant.
     * @param subs the ids of all subscriptions that were read (`sub_…`)
     */
    noteAll(subs: Iterable<string>, texts: ReadonlyMap<string, string>): void {
      for (const sub of subs) note(sub, texts.get(sub));
    },
    /** Drops the state of all subscriptions which no longer exist. */
    prune(exists: (sub: string) => boolean): void {
      for (const sub of known.keys()) if (!exists(sub)) known.delete(sub);
    },
    /** Drops all entries at the start of a new term because there may have been a different leader in the meantime. */
    forget: () => known.clear(),
  };
}

/**
 * Returns the keys of all Subscriptions whose status should be updated.
 * @param sub subscription id (`sub_…`)
 * @param first whether the endpoint was just found to be working
 */
export function keysConcerned({ Subscription }: Pick<Caches, 'Subscription'>, sub: string, first: boolean): string[] {
  return (
    Subscription.store
      .byIndex('publicId', sub)
      // For a working endpoint, only include Subscriptions previously reported as failing.
      .filter(subscription => !first || showsFailing(subscription))
      .map(({ metadata }) => keyOf(metadata))
  );
}

export type EndpointHealths = ReturnType<typeof createEndpointHealths>;

import { type EndpointHealth, parseEndpointHealth } from '../../../core/delivery/endpoint-health.ts';
import { keyOf } from '../../../kube/object.ts';
import type { InboxRef } from '../../../redis/inbox-store.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import { findCondition } from '../../engine/conditions.ts';

export interface EndpointHealthsDeps {
  /** Reads the health from Redis. Returns undefined if the field does not exist. */
  readonly read: (inbox: InboxRef) => Promise<string | undefined>;
  /**
   * Called when the health of a subscription (`sub_…`) changes. It is also called when an endpoint is found to be
   * working for the first time, with `first` set to true.
   */
  readonly onNews: (sub: string, first: boolean) => void;
  readonly log: Pick<Logger, 'debug'>;
}

/**
 * Returns true if the status has EndpointFailing=True. If an endpoint works, the status only needs to be updated in
 * this case.
 */
function showsFailing({ status }: Cached<'Subscription'>): boolean {
  return findCondition(status?.conditions, 'EndpointFailing')?.status === 'True';
}

/**
 * Stores the health of endpoints that are failing or disabled. The health is determined by the data plane, which
 * publishes a message when it disables an endpoint. Other changes are found by the audit, which reads all endpoints
 * regularly. This also covers lost messages.
 */
export function createEndpointHealths({ read, onNews, log }: EndpointHealthsDeps) {
  /** The value is undefined if the endpoint works. */
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
     * Returns the health of an endpoint, or undefined if the endpoint works. It is only read from Redis if the endpoint
     * was not working before.
     */
    async current(inbox: InboxRef): Promise<EndpointHealth | 'unknown' | undefined> {
      if (!known.has(inbox.sub)) return 'unknown';
      if (known.get(inbox.sub) === undefined) return undefined;
      const health = parseEndpointHealth(await read(inbox));
      known.set(inbox.sub, health);
      return health;
    },
    /** Handles a message from the data plane that the endpoint was disabled. */
    onDisabled(inbox: InboxRef): void {
      read(inbox).then(
        text => note(inbox.sub, text),
        (err: unknown) => log.debug({ err }, 'the health of an endpoint cannot be read'),
      );
    },
    /**
     * Processes the results of an audit for a tenant. @param subs the ids of all subscriptions that were read (`sub_…`)
     */
    noteAll(subs: Iterable<string>, texts: ReadonlyMap<string, string>): void {
      for (const sub of subs) note(sub, texts.get(sub));
    },
    /** Removes the state of subscriptions that no longer exist. */
    prune(exists: (sub: string) => boolean): void {
      for (const sub of known.keys()) if (!exists(sub)) known.delete(sub);
    },
    /** Removes all entries at the start of a term, because another replica may have been the leader in the meantime. */
    forget: () => known.clear(),
  };
}

/**
 * Returns the keys of the Subscriptions for which the status must be updated.
 * @param sub the subscription id (`sub_…`)
 * @param first set to true if the endpoint was just found to be working
 */
export function keysConcerned({ Subscription }: Pick<Caches, 'Subscription'>, sub: string, first: boolean): string[] {
  return (
    Subscription.store
      .byIndex('publicId', sub)
      // If the endpoint works, we only include Subscriptions that have been reported as failing.
      .filter(subscription => !first || showsFailing(subscription))
      .map(({ metadata }) => keyOf(metadata))
  );
}

export type EndpointHealths = ReturnType<typeof createEndpointHealths>;

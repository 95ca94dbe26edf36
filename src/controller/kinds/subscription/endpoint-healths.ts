import { type EndpointHealth, parseEndpointHealth } from '../../../core/delivery/endpoint-health.ts';
import { keyOf } from '../../../kube/object.ts';
import type { InboxRef } from '../../../redis/inbox-store.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Cached, Caches } from '../../caches/caches.ts';
import { findCondition } from '../../engine/conditions.ts';

export interface EndpointHealthsDeps {
  /** Reads the field from Redis; undefined if it does not exist. */
  readonly read: (inbox: InboxRef) => Promise<string | undefined>;
  /** Called when the known health of `sub_…` changes, and when it becomes known (`first`: it works). */
  readonly onNews: (sub: string, first: boolean) => void;
  readonly log: Pick<Logger, 'debug'>;
}

/** Returns whether the status has EndpointFailing=True. Of endpoints that work, only these need a new status. */
function showsFailing({ status }: Cached<'Subscription'>): boolean {
  return findCondition(status?.conditions, 'EndpointFailing')?.status === 'True';
}

/**
 * Keeps the health of endpoints that fail or are disabled. The data plane decides, and publishes at once when it
 * disables an endpoint. Everything else, and lost messages, come with the audit, which reads everything anyway.
 */
export function createEndpointHealths({ read, onNews, log }: EndpointHealthsDeps) {
  /** undefined: it works. */
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
    /** Returns the health of an endpoint; undefined: it works. Reads it from Redis only if it did not work. */
    async current(inbox: InboxRef): Promise<EndpointHealth | 'unknown' | undefined> {
      if (!known.has(inbox.sub)) return 'unknown';
      if (known.get(inbox.sub) === undefined) return undefined;
      const health = parseEndpointHealth(await read(inbox));
      known.set(inbox.sub, health);
      return health;
    },
    /** Handles the data plane's message that it disabled the endpoint. */
    onDisabled(inbox: InboxRef): void {
      read(inbox).then(
        text => note(inbox.sub, text),
        (err: unknown) => log.debug({ err }, 'the health of an endpoint cannot be read'),
      );
    },
    /** Notes what the audit found for a tenant. @param subs every `sub_…` that it read */
    noteAll(subs: Iterable<string>, texts: ReadonlyMap<string, string>): void {
      for (const sub of subs) note(sub, texts.get(sub));
    },
    /** Forgets subscriptions that are gone. */
    prune(exists: (sub: string) => boolean): void {
      for (const sub of known.keys()) if (!exists(sub)) known.delete(sub);
    },
    /** Forgets everything at the start of a term: another leader may have led in between. */
    forget: () => known.clear(),
  };
}

/** Returns the keys of Subscriptions whose status must follow. @param sub `sub_…` @param first it is known to work */
export function keysConcerned({ Subscription }: Pick<Caches, 'Subscription'>, sub: string, first: boolean): string[] {
  return (
    Subscription.store
      .byIndex('publicId', sub)
      // Of endpoints that work, only those that were reported as failing.
      .filter(subscription => !first || showsFailing(subscription))
      .map(({ metadata }) => keyOf(metadata))
  );
}

export type EndpointHealths = ReturnType<typeof createEndpointHealths>;

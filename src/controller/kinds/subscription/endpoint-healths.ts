import { type EndpointHealth, parseEndpointHealth } from '../../../core/delivery/endpoint-health.ts';
import { keyOf } from '../../../kube/object.ts';
import type { InboxRef } from '../../../redis/inbox-store.ts';
import type { Logger } from '../../../telemetry/log.ts';
import type { Cached, World } from '../../caches/caches.ts';
import { findCondition } from '../../engine/conditions.ts';

export interface EndpointHealthsDeps {
  /** The field as Redis has it; undefined where there is none. */
  readonly read: (inbox: InboxRef) => Promise<string | undefined>;
  /** What is known of the endpoint of `sub_…` changed, or was not known before: its status may follow. */
  readonly onNews: (sub: string, first: boolean) => void;
  readonly log: Pick<Logger, 'debug'>;
}

/** Whether the status says that the endpoint fails: of those that work, only these are looked at. */
function saysFailing({ status }: Cached<'Subscription'>): boolean {
  return findCondition(status?.conditions, 'EndpointFailing')?.status === 'True';
}

/**
 * What this leader knows of endpoints that do not simply work. The data plane decides, and says at once when it disables
 * one; all else, and what was said while nobody listened, comes with the audit, which reads everything anyway.
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
    /** Of a subscription's endpoint, read anew where it did not work; undefined: it works. */
    async look(inbox: InboxRef): Promise<EndpointHealth | 'unknown' | undefined> {
      if (!known.has(inbox.sub)) return 'unknown';
      if (known.get(inbox.sub) === undefined) return undefined;
      const health = parseEndpointHealth(await read(inbox));
      known.set(inbox.sub, health);
      return health;
    },
    /** The data plane says that it disabled the endpoint. */
    onDisabled(inbox: InboxRef): void {
      read(inbox).then(
        text => note(inbox.sub, text),
        (err: unknown) => log.debug({ err }, 'the health of an endpoint cannot be read'),
      );
    },
    /** All that a tenant's subscriptions have, as the audit found it. @param subs every `sub_…` that it looked at */
    noteAll(subs: Iterable<string>, texts: ReadonlyMap<string, string>): void {
      for (const sub of subs) note(sub, texts.get(sub));
    },
    /** What is gone is not kept. */
    prune(exists: (sub: string) => boolean): void {
      for (const sub of known.keys()) if (!exists(sub)) known.delete(sub);
    },
    /** A new term: what is known may be another leader's past. */
    forget: () => known.clear(),
  };
}

/** Returns keys of Subscriptions that news of an endpoint concern. @param sub `sub_…` @param first it is known to work */
export function keysConcerned({ Subscription }: Pick<World, 'Subscription'>, sub: string, first: boolean): string[] {
  return (
    Subscription.store
      .byIndex('publicId', sub)
      // Of those that work, only what said something else is looked at.
      .filter(subscription => !first || saysFailing(subscription))
      .map(({ metadata }) => keyOf(metadata))
  );
}

export type EndpointHealths = ReturnType<typeof createEndpointHealths>;

import type { ResolvedHeader } from './endpoint-headers.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute } from './routes.ts';

/** The result for `of` under these circumstances. It needs to be computed again if any of these have changed. */
export type Reuse<T> = (of: object, circumstances: readonly unknown[], make: () => T) => T;

/**
 * The results of earlier compilations. They are used so that a change only needs to recompute what is affected by it.
 * This matters because hashing and sealing 10,000 subscriptions would take longer than a barrier may. This does not
 * change the results. Equal parts are represented by the same object, making it cheap to find differences. You must
 * always use the same `judgeEndpoint`, `sealEndpoint`, and `openHeader` with it, because they are not included in the
 * circumstances.
 */
export interface RoutesMade {
  readonly names: Reuse<{ readonly id: string; readonly generation: string }>;
  readonly judgement: Reuse<string>;
  readonly headers: Reuse<readonly ResolvedHeader[]>;
  readonly queue: Reuse<QueueRoute>;
  readonly subscription: Reuse<SubscriptionRoute>;
  readonly integration: Reuse<IntegrationRoute>;
}

export function createRoutesMade(): RoutesMade {
  return {
    names: createReuse(),
    judgement: createReuse(),
    headers: createReuse(),
    queue: createReuse(),
    subscription: createReuse(),
    integration: createReuse(),
  };
}

/** Remembers the last result for each object, as long as there is another reference to the object. */
function createReuse<T>(): Reuse<T> {
  const known = new WeakMap<object, { readonly circumstances: readonly unknown[]; readonly made: T }>();
  return (of, circumstances, make) => {
    const last = known.get(of);
    if (last !== undefined && isSame(last.circumstances, circumstances)) return last.made;
    const made = make();
    known.set(of, { circumstances, made });
    return made;
  };
}

function isSame(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((each, i) => Object.is(each, b[i]));
}

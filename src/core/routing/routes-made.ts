import type { ResolvedHeader } from './endpoint-headers.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute } from './routes.ts';

/** The result for `of` under these circumstances. Recomputed if any of them changes. */
export type Reuse<T> = (of: object, circumstances: readonly unknown[], make: () => T) => T;

/**
 * Results of earlier compilations, which ensure that an edit only costs as much as what it affects. This matters
 * because hashing and sealing 10,000 subscriptions would take longer than a barrier may. Results are the same with or
 * without it. Equal parts are represented by the same object, making it cheap to find differences. Must only be used
 * with a single `judgeEndpoint`, `sealEndpoint`, and `openHeader`, as those aren't among the circumstances.
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

/** Keeps the last result for each object for as long as something else references the object. */
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

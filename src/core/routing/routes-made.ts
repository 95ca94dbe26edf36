import type { ResolvedHeader } from './endpoint-headers.ts';
import type { IntegrationRoute, QueueRoute, SubscriptionRoute } from './routes.ts';

/** The result of `of` in these circumstances. The result must be computed again if any of them change. */
export type Reuse<T> = (of: object, circumstances: readonly unknown[], make: () => T) => T;

/**
 * Results of earlier compilations, which are reused so that a change only recomputes the affected parts. Reuse is
 * important because hashing and sealing 10,000 subscriptions would take longer than the maximum duration of a barrier.
 * The results themselves do not change. Equal parts are represented by the same object, making it cheap to find
 * differences. It must always be used with the same `judgeEndpoint`, `sealEndpoint`, and `openHeader` because they are
 * not included in the circumstances.
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

/** Remembers the last result for each object while there are other references to this object. */
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

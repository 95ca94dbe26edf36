import type { IntegrationRoute, QueueRoute, SubscriptionRoute } from './routes.ts';

/** The result for `of` under these circumstances. It is computed again if one of them changes. */
export type Reuse<T> = (of: object, circumstances: readonly unknown[], make: () => T) => T;

/**
 * Results of earlier compilations, so that an edit costs only what it affects: hashing and sealing 10,000
 * subscriptions takes longer than a barrier may. It changes no answer. Equal parts are the same object, which makes
 * differences cheap to find. Use it with one `judgeEndpoint` and one `sealEndpoint` only: they are not among the
 * circumstances.
 */
export interface RoutesMade {
  readonly names: Reuse<{ readonly id: string; readonly generation: string }>;
  readonly judgement: Reuse<string>;
  readonly queue: Reuse<QueueRoute>;
  readonly subscription: Reuse<SubscriptionRoute>;
  readonly integration: Reuse<IntegrationRoute>;
}

export function createRoutesMade(): RoutesMade {
  return {
    names: createReuse(),
    judgement: createReuse(),
    queue: createReuse(),
    subscription: createReuse(),
    integration: createReuse(),
  };
}

/** Keeps the last result for each object, as long as the object is referenced elsewhere. */
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

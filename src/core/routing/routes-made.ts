import type { IntegrationRoute, QueueRoute, SubscriptionRoute } from './routes.ts';

/** What was made of `of` under these circumstances; made again when one of them is another than the last time. */
export type Reuse<T> = (of: object, circumstances: readonly unknown[], make: () => T) => T;

/**
 * What earlier routes were made of, so that an edit costs what it concerns: hashing and sealing 10,000 subscriptions
 * takes longer than a barrier may. It changes no answer. Parts that are equal are the same object, which is what a
 * difference is found by. For one `judgeEndpoint` and one `sealEndpoint`: these are not among the circumstances.
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

/** Keeps the last answer for each object, as long as somebody else keeps the object. */
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

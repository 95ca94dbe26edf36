import type { KindName } from '../../src/api/kinds/kinds.ts';
import { KINDS } from '../../src/api/kinds/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { isKubeError } from '../../src/kube/kube-error.ts';
import { resourceOf } from '../../src/kube/resource.ts';

export const PRODUCER = 'shop';
/** One workspace stands for all partners: the subscriber does not change the cost. */
export const PARTNER = 'partner';

/** Subscriptions of each integration: one for every stream. */
export const SUBSCRIPTIONS_EACH = 20;
/** Calls in flight at once. */
const AT_ONCE = 32;

export interface Size {
  readonly activations: number;
  readonly subscriptions: number;
}

/** An object of ours to be made. */
export interface Wanted {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  readonly spec: object;
}

const nameOf = (kind: string, i: number): string => `${kind}-${String(i).padStart(6, '0')}`;

/** `Subscription` and `Activation` by number, as the population has them. */
export const subscriptionName = (i: number): string => nameOf('subscription', i);
export const activationName = (i: number): string => nameOf('activation', i);
/** Which integration and stream the i-th subscription is for. */
export const pairOf = (i: number) => ({
  integration: nameOf('integration', Math.floor(i / SUBSCRIPTIONS_EACH)),
  stream: nameOf('stream', i % SUBSCRIPTIONS_EACH),
});

/**
 * The objects of one tenant: every integration is subscribed to every stream, with an endpoint, and has as many open
 * group keys as the others.
 */
export function populate({ activations, subscriptions }: Size): Wanted[] {
  const integrations = Math.ceil(subscriptions / SUBSCRIPTIONS_EACH);
  const wanted: Wanted[] = [];
  const add = (kind: KindName, namespace: string, name: string, spec: object) =>
    wanted.push({ kind, namespace, name, spec });
  for (let i = 0; i < SUBSCRIPTIONS_EACH; i++) add('CatalogStream', PRODUCER, nameOf('stream', i), { public: true });
  for (let i = 0; i < integrations; i++) {
    add('Integration', PRODUCER, nameOf('integration', i), { workspace: PARTNER });
  }
  for (let i = 0; i < subscriptions; i++) {
    const endpoint = { url: `https://127.0.0.1:9/hooks/${i}`, timeoutSeconds: 10 };
    add('Subscription', PARTNER, subscriptionName(i), { producer: PRODUCER, ...pairOf(i), endpoint });
  }
  for (let i = 0; i < activations; i++) {
    const integration = nameOf('integration', i % integrations);
    add('Activation', PRODUCER, activationName(i), { integration, groupKey: `customer/${i}` });
  }
  return wanted;
}

/** Makes all of them, many at once. */
export async function createAll(client: KubeClient, wanted: readonly Wanted[]): Promise<void> {
  const rest = wanted.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const { kind, namespace, name, spec } of rest) {
        // An answer that was lost is asked for again by the client.
        await client.create(resourceOf(KINDS[kind]), { namespace, name }, { spec }).catch((error: unknown) => {
          if (!isKubeError(error, 409)) throw error;
        });
      }
    }),
  );
}

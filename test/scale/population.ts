import type { KindName } from '../../src/api/kinds/kinds.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { isKubeError } from '../../src/kube/kube-error.ts';
import { resourceOf } from '../../src/kube/resource.ts';

export const PRODUCER = 'shop';
/** The workspace of all partners. The cost does not depend on the subscriber. */
export const PARTNER = 'partner';

/** The number of subscriptions of each integration: one for each stream. */
export const SUBSCRIPTIONS_EACH = 20;
/** The number of concurrent requests. */
const AT_ONCE = 32;

export interface Size {
  readonly activations: number;
  readonly subscriptions: number;
}

/** A custom resource to create. */
export interface Wanted {
  readonly kind: KindName;
  readonly namespace: string;
  readonly name: string;
  readonly spec: object;
}

const nameOf = (kind: string, i: number): string => `${kind}-${String(i).padStart(6, '0')}`;

/** Returns the name of a `Subscription` by its number. */
export const subscriptionName = (i: number): string => nameOf('subscription', i);
export const activationName = (i: number): string => nameOf('activation', i);
/** Returns the integration and the stream of a subscription by its number. */
export const pairOf = (i: number) => ({
  integration: nameOf('integration', Math.floor(i / SUBSCRIPTIONS_EACH)),
  stream: nameOf('stream', i % SUBSCRIPTIONS_EACH),
});

/**
 * Returns the objects of one tenant. Every integration subscribes to every stream and has an endpoint. The open group
 * keys are distributed evenly among the integrations.
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

/** Creates all objects, using `AT_ONCE` concurrent requests. */
export async function createAll(client: KubeClient, wanted: readonly Wanted[]): Promise<void> {
  const rest = wanted.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const { kind, namespace, name, spec } of rest) {
        // If a response is lost, the client sends the request again.
        await client.create(resourceOf(kind), { namespace, name }, { spec }).catch((error: unknown) => {
          if (!isKubeError(error, 409)) throw error;
        });
      }
    }),
  );
}

import type { Sluice } from '../../support/sluice.ts';
import type { Installation } from './installation.ts';
import { type Observer, observe } from './observer.ts';
import { createPublisher, type Publisher } from './publisher.ts';
import { type Receiver, startReceiver } from './receiver.ts';
import {
  activation,
  apply,
  ingressKey,
  integration,
  type Manifest,
  stream,
  subscription,
  tenant,
  waitForAll,
} from './world.ts';

export const PRODUCER = 'shop';
export const QUEUE = 'orders';
export const INGRESS_KEY = 'an-ingress-key-of-the-shop';
/** The name of each partner's Subscription. */
export const SUBSCRIPTION = `${PRODUCER}-${QUEUE}`;

/** Short retry delays, and more of them than any test requires. */
export const RETRY_SOON = Array.from({ length: 16 }, () => '200ms');

/**
 * A producer with one stream, partners that are each subscribed to it with an endpoint at the receiver, and open group
 * keys.
 */
export function smallWorld(options: {
  readonly partners: readonly string[];
  readonly groupKeys: readonly string[];
  readonly receiver: Receiver;
  readonly endpoint?: object;
}): Manifest[] {
  const { partners, groupKeys, receiver } = options;
  return [
    ...tenant(PRODUCER),
    ...partners.flatMap(partner => tenant(partner)),
    stream(PRODUCER, QUEUE),
    ingressKey(PRODUCER, INGRESS_KEY),
    ...partners.map(partner => integration(PRODUCER, partner)),
    ...partners.map(partner =>
      subscription(partner, PRODUCER, QUEUE, {
        url: receiver.urlOf(partner),
        retrySchedule: RETRY_SOON,
        ...options.endpoint,
      }),
    ),
    ...partners.flatMap(partner => groupKeys.map(groupKey => activation(PRODUCER, partner, groupKey))),
  ];
}

export interface Running {
  readonly receiver: Receiver;
  readonly observer: Observer;
  /**
   * Returns a publisher for the ingress of `sluice`, using the stream of the world or another stream that accepts the
   * same key.
   */
  readonly publisherOf: (sluice: Sluice, to?: { readonly producer?: string; readonly queue?: string }) => Publisher;
  readonly close: () => Promise<void>;
}

/** Applies a small world and waits until it has been applied completely. The processes of Sluice must be running. */
export async function settle(
  { cluster }: Installation,
  options: { readonly partners: readonly string[]; readonly groupKeys: readonly string[]; readonly endpoint?: object },
): Promise<Running> {
  const receiver = await startReceiver();
  const observer = observe(cluster.kubeconfig);
  const publishers: Publisher[] = [];
  await apply(cluster, smallWorld({ ...options, receiver }));
  await waitForAll(cluster, 'catalogstream', PRODUCER);
  // If there are no objects of a kind, `waitForAll` fails.
  if (options.partners.length * options.groupKeys.length > 0) {
    await waitForAll(cluster, 'activation', PRODUCER, 'Effective');
  }
  for (const partner of options.partners) await waitForAll(cluster, 'subscription', partner, 'Live');
  return {
    receiver,
    observer,
    publisherOf: ({ ingressUrl }, to) => {
      const publisher = createPublisher({ ingressUrl, producer: PRODUCER, queue: QUEUE, key: INGRESS_KEY, ...to });
      publishers.push(publisher);
      return publisher;
    },
    close: async () => {
      await Promise.all(publishers.map(publisher => publisher.close()));
      await receiver.close();
      await observer.close();
    },
  };
}

import {
  activation,
  ingressKey,
  integration,
  type Manifest,
  stream,
  subscription,
  tenant,
} from '../system/support/world.ts';

/**
 * Returns the objects of a producer (`shop`) and a partner (`ada`), with one stream, one open group key, and one
 * subscription.
 *
 * @param key ingress key of the producer
 * @param endpoint of the subscription
 */
export function shopObjects(key: string, endpoint: Parameters<typeof subscription>[3]): Manifest[] {
  return [
    ...tenant('shop'),
    ...tenant('ada'),
    stream('shop', 'orders'),
    ingressKey('shop', key),
    integration('shop', 'ada'),
    activation('shop', 'ada', 'customer-42'),
    subscription('ada', 'shop', 'orders', endpoint),
  ];
}

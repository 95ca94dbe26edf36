import { type System, TENANTS } from './system.ts';

/**
 * The start of each history: two streams, two partners, and events that can be delivered. All of this may be undone
 * later.
 */
export async function settleWorld(system: System): Promise<void> {
  const { objects } = system;
  for (const { name, names } of system.tenants) {
    for (const stream of names.streams) {
      objects.apply('CatalogStream', name, stream, { public: true, retention: '1h', deletionPolicy: 'Retain' });
    }
    for (const integration of names.integrations) {
      objects.apply('Integration', name, integration, { workspace: names.partner });
      objects.apply('Activation', name, `${integration}-k-rest`, { integration, groupKey: 'k' });
    }
    objects.apply('Activation', name, 'shop-k1-rest', { integration: 'shop', groupKey: 'k1' });
    for (const [integration, stream] of [
      ['shop', 'orders'],
      ['bank', 'orders'],
      ['shop', 'parcels'],
    ] as const) {
      objects.apply('Subscription', names.partner, `${integration}-${stream}`, {
        producer: name,
        integration,
        stream,
        endpoint: { url: `https://${integration}.example.org/` },
        ordering: 'ByGroupKey',
        deletionPolicy: 'Retain',
      });
    }
  }
  system.clock.ms += 1_000;
  await system.step('two tenants with two streams, two partners and three subscriptions each', () => {
    system.takeOver();
    return system.lead();
  });
  await system.step('events of both have arrived', async () => {
    for (const name of TENANTS) {
      await system.publish(name, 'orders', 'k', false, 16_385);
      await system.publish(name, 'orders', 'k1', false, 0);
      await system.publish(name, 'parcels', 'k', false, 0);
    }
    await system.flow();
  });
}

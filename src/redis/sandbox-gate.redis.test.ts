import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { integrationKeys } from './keys.ts';
import { createSandboxClient } from './sandbox-client.ts';
import { createSandboxGate } from './sandbox-gate.ts';
import type { SandboxSource } from './sandbox-source.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { START_MS } from './testing/tenant.ts';

onEachRedis(redis => {
  test('a group key counts from the latest of the times that streams of an integration tell', async () => {
    const [tenant, run, integration] = [`ten_${randomUUID()}`, 'r', 'int_x'];
    const sinceOf: Record<string, string | undefined> = { orders: '100', refunds: '200' };
    const source: SandboxSource = {
      lookup: async () => undefined,
      readState: async () => 'active',
      readGate: async ({ queue }) => {
        const since = sinceOf[queue];
        return {
          integration: { ready: '1', state: 'active' },
          subscription: {},
          activations: new Map(since === undefined ? [] : [['a', since]]),
        };
      },
    };
    const ofRun = createSandboxClient(redis(), tenant, run, START_MS + 86_400_000);
    const gate = createSandboxGate({ source, ofRun, tenant, run, nowMs: () => START_MS });
    const copied = async (queue: string) => {
      const inbox = { integration, sub: `sub_${queue}`, inc: 'inc1' };
      await gate.copy({ inbox, queue }, ['a'], [inbox]);
      return ofRun.call('hget', integrationKeys(integration).act, 'a');
    };
    expect([await copied('orders'), await copied('refunds'), await copied('orders')]).toEqual(['100', '200', '200']);
    sinceOf.orders = undefined;
    expect(await copied('orders')).toBeNull();
    sinceOf.orders = '150';
    expect(await copied('orders')).toBe('150');
  });
});

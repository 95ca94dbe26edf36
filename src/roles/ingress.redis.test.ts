import { hash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { createPartWriter } from '../part/control/part-writer.ts';
import { partKeys } from '../part/keys.ts';
import { createTenant, QUEUE } from '../record/testing/tenant.ts';
import { connectRedis } from '../redis/client.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { startIngress } from './ingress.ts';
import type { Parts } from './parts.ts';

const KEY = 'sk_0123456789abcdef';

test('events are stored in the part of their stream', async () => {
  const log = createLogger({ level: 'silent' });
  const redis = await connectRedis(redisUrl(), log);
  onTestFinished(() => redis.close());
  const t = createTenant(redis);
  const routes = { ...t.routes({}), keys: { [hash('sha256', KEY)]: '' } };
  await t.apply(routes);
  await createPartWriter(redis, async () => {}).write({
    fence: 1,
    have: t.routes({}, null),
    want: routes,
    isKnown: false,
    openKeys: () => new Map(),
    nowMs: Date.now(),
  });
  const port = await freePort();
  const role = await startIngress({
    config: { ingressPort: port } as Parts['config'],
    log,
    registry: createRegistry(),
    tracing: undefined,
    redis,
    redisImpairments: () => [],
    keysVersion: () => undefined,
    survey: async () => undefined,
    kubeMetrics: () => ({}) as ReturnType<Parts['kubeMetrics']>,
    certificates: { watch: () => {} } as unknown as Parts['certificates'],
    nowMs: Date.now,
    alarm: () => {},
  });
  onTestFinished(role.stop);
  const answer = await fetch(`http://127.0.0.1:${port}/events/${t.tenant}/${QUEUE}`, {
    method: 'POST',
    headers: { 'x-api-key': KEY },
  });
  expect(answer.status).toBe(202);
  const { log: partLog } = partKeys({ tenant: t.tenant, queue: QUEUE, gen: 'gen1', number: 0 });
  expect(await redis.call('xlen', partLog)).toBe(1);
});

import { hash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../test/support/free-port.ts';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { LAYOUTS } from '../config/layout.ts';
import { createPartWriter } from '../part/control/part-writer.ts';
import { partKeys } from '../part/keys.ts';
import { connectRedis } from '../redis/client.ts';
import { queueKeys } from '../redis/keys.ts';
import { createTenant, QUEUE } from '../redis/testing/tenant.ts';
import { createLogger } from '../telemetry/log.ts';
import { createRegistry } from '../telemetry/metrics.ts';
import { startIngress } from './ingress.ts';
import type { Parts } from './parts.ts';

const KEY = 'sk_0123456789abcdef';

test.each(LAYOUTS)('events are stored where the layout says: %s', async layout => {
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
    config: { layout, ingressPort: port } as Parts['config'],
    log,
    registry: createRegistry(),
    tracing: undefined,
    redis,
    redisImpairments: () => [],
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
  const { events } = queueKeys(t.tenant, QUEUE, 'gen1');
  const stored = await Promise.all([events, partLog].map(key => redis.call('exists', key)));
  expect(stored).toEqual(layout === 'parts' ? [0, 1] : [1, 0]);
});

import { createRouter } from '../dataplane/router/router.ts';
import { createRoutingTrace } from '../dataplane/router/routing-spans.ts';
import { createHintIndex } from '../redis/hints.ts';
import { createInboxStore } from '../redis/inbox-store.ts';
import { createLedgerStore } from '../redis/ledger-store.ts';
import { createQueueStore } from '../redis/queue-store.ts';
import { createTraceparentReader } from '../redis/traceparents.ts';
import { createTrafficStore } from '../redis/traffic-store.ts';
import { type Parts, type Running } from './parts.ts';

export function startRouter(parts: Parts): Running {
  const { config, log, registry, tracing, redis, redisImpairments, nowMs, alarm } = parts;
  // In parts, events are routed by ingress and dispatchers.
  if (config.layout === 'parts') return { stop: async () => {}, impairments: redisImpairments };
  const router = createRouter({
    queues: createQueueStore(redis),
    inboxes: createInboxStore(redis),
    ledger: createLedgerStore(redis),
    traffic: createTrafficStore(redis),
    queueHints: createHintIndex(redis, 'r'),
    inboxHints: createHintIndex(redis, 'd'),
    alarm,
    nowMs,
    log,
    registry,
    trace: tracing && createRoutingTrace({ tracing, readTraceparents: createTraceparentReader(redis), log }),
  });
  redis.onReconnect(router.onReconnect);
  router.start();
  return { stop: router.stop, impairments: redisImpairments };
}

import { VERSION } from '../config/version.ts';
import { rootKeyFingerprint } from '../core/delivery/root-key-fingerprint.ts';
import { deriveSealKeys } from '../core/delivery/seal.ts';
import { createDispatcher } from '../dataplane/dispatcher/dispatcher.ts';
import { createEndpointClient } from '../dataplane/dispatcher/endpoint-client.ts';
import { createReplaySweep } from '../dataplane/dispatcher/replay-sweep.ts';
import { createHintIndex } from '../redis/hints.ts';
import { createInboxStore } from '../redis/inbox-store.ts';
import { holdHints, watchRootKey } from '../redis/root-key-watch.ts';
import { createTrafficStore } from '../redis/traffic-store.ts';
import { registerBacklogMetrics } from '../redis/work-metrics.ts';
import { startPartDispatcher } from './part-dispatcher.ts';
import { type Parts, type Running } from './parts.ts';
import { openReplays } from './replays.ts';
import { openSandboxRunner } from './sandbox.ts';

export function startDispatcher(parts: Parts): Promise<Running> {
  return parts.config.layout === 'parts' ? startPartDispatcher(parts) : startQueueDispatcher(parts);
}

async function startQueueDispatcher(parts: Parts): Promise<Running> {
  const { config, log, registry, tracing, redis, nowMs, alarm } = parts;
  const rootKey = config.rootKey as Uint8Array;
  const keyWatch = await watchRootKey({
    redis,
    fingerprint: rootKeyFingerprint(rootKey),
    onMatch: () => {
      dispatcher.onReconnect();
      sandbox.lookEverywhere();
    },
  });
  // Values encrypted with another key can't be decrypted. They stay due until the keys match again.
  const hints = holdHints(createHintIndex(redis, 'd'), keyWatch.differs);
  const client = createEndpointClient({ allowedNetworks: config.allowedNetworks });
  const dispatcher = createDispatcher({
    inboxes: createInboxStore(redis),
    hints,
    traffic: createTrafficStore(redis),
    client,
    keys: { rootKey, sealKeys: deriveSealKeys(rootKey) },
    version: VERSION,
    alarm,
    nowMs,
    log,
    registry,
    tracing,
  });
  const sweep = createReplaySweep({
    replays: openReplays(redis, nowMs),
    hints: createHintIndex(redis, 'a'),
    nowMs,
    log,
  });
  registerBacklogMetrics(registry, { redis, nowMs });
  redis.onReconnect(dispatcher.onReconnect);
  const sandbox = openSandboxRunner(parts, keyWatch.differs);
  redis.onReconnect(sweep.lookEverywhere);
  dispatcher.start();
  sweep.start();
  sandbox.start();
  return {
    stop: async () => {
      keyWatch.stop();
      await sandbox.stop();
      await sweep.stop();
      await dispatcher.stop();
      await client.close();
    },
    impairments: () => [...parts.redisImpairments(), ...keyWatch.impairments()],
  };
}

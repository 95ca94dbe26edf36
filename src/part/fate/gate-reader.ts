import type { GateReader } from '../../redis/gate-reader.ts';
import { type PartClient, readPart } from '../inbox/find-part.ts';
import { slotOf } from '../keys.ts';
import { isTenantReady, readFate, readSubscriber } from './fate.ts';

/** Streams of a tenant that an integration subscribes to. */
export type StreamsOfIntegration = (tenant: string, integration: string) => readonly string[];

/**
 * Reads whether a group key is open for an integration: in the part of each stream that it is subscribed to. An integration
 * without subscriptions has nothing that could be open; then the state of the tenant alone decides.
 */
export function createPartGateReader(redis: PartClient, streamsOf: StreamsOfIntegration): GateReader {
  async function isOpenIn(tenant: string, queue: string, integration: string, groupKey: string): Promise<boolean> {
    const [part, subscriber] = await Promise.all([
      readPart(redis, tenant, queue),
      readSubscriber(redis, tenant, queue, integration),
    ]);
    // It is not in force yet, or no longer.
    if (subscriber === undefined) return true;
    if (part === undefined) return false;
    const at = { part, slot: slotOf(subscriber.sub, subscriber.inc) };
    const { isWhole, row, since } = await readFate(redis, at, groupKey);
    return isWhole && row !== undefined && since !== undefined;
  }

  return {
    async isOpen(tenant, integration, groupKey) {
      if (!(await isTenantReady(redis, tenant))) return false;
      const queues = [...new Set(streamsOf(tenant, integration))];
      const open = await Promise.all(queues.map(queue => isOpenIn(tenant, queue, integration, groupKey)));
      return open.every(Boolean);
    },
  };
}

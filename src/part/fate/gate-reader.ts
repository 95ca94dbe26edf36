import { createGateReader, type GateReader } from '../../record/gate-reader.ts';
import { type PartClient, readPart } from '../inbox/find-part.ts';
import { slotOf } from '../keys.ts';
import { readFate, readSubscriber } from './fate.ts';

/** All streams of a tenant to which an integration has subscribed. */
export type StreamsOfIntegration = (tenant: string, integration: string) => readonly string[];

/**
 * Reads if a group key is open for an integration. Uses the controller's record and the parts of all streams that the
 * integration has subscribed to. The record changes only after all parts have been updated.
 */
export function createPartGateReader(redis: PartClient, streamsOf: StreamsOfIntegration): GateReader {
  async function isOpenIn(tenant: string, queue: string, integration: string, groupKey: string): Promise<boolean> {
    const [part, subscriber] = await Promise.all([
      readPart(redis, tenant, queue),
      readSubscriber(redis, tenant, queue, integration),
    ]);
    // The subscription is not in force yet or no longer in force.
    if (subscriber === undefined) return true;
    if (part === undefined) return false;
    const at = { part, slot: slotOf(subscriber.sub, subscriber.inc) };
    const { isWhole, row, since } = await readFate(redis, at, groupKey);
    return isWhole && row !== undefined && since !== undefined;
  }

  const record = createGateReader(redis);
  return {
    isClosed: record.isClosed,
    async isOpen(tenant, integration, groupKey) {
      if (!(await record.isOpen(tenant, integration, groupKey))) return false;
      const queues = [...new Set(streamsOf(tenant, integration))];
      const open = await Promise.all(queues.map(queue => isOpenIn(tenant, queue, integration, groupKey)));
      return open.every(Boolean);
    },
  };
}

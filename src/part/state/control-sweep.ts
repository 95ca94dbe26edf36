import type { SlotPatch } from '../../record/control-plan.ts';
import { FencedError } from '../../record/control-store.ts';
import { type ControlSweep, createRecordSweep, type StoredInbox } from '../../record/control-sweep.ts';
import type { RedisClient } from '../../redis/client.ts';
import { type NamedScript, readNamedScript } from '../../redis/named-scripts.ts';
import { callScript, type ScriptClient } from '../call.ts';
import { createGate } from '../gate/gate.ts';
import { readPart } from '../inbox/find-part.ts';
import { PART_NUMBER, type Part, partKeys, REMOVED, slotOf } from '../keys.ts';
import { createListedParts } from '../members/listed-parts.ts';
import { createPartRemoval } from './part-removal.ts';

const PURGE_PART = readNamedScript(new URL('purge-part.lua', import.meta.url));
const PURGE_SLOT = readNamedScript(new URL('purge-slot.lua', import.meta.url));

function createPurge(redis: RedisClient & ScriptClient) {
  const { settle, remove } = createPartRemoval(redis);

  async function purge(script: NamedScript, part: Part, args: Readonly<Record<string, string | number>>) {
    const keys = partKeys(part);
    const [word] = await callScript(redis, script, { keys, args });
    if (word === 'FENCED') throw new FencedError(`a newer controller leads ${keys.meta}`);
    return word === 'OK';
  }

  /** Removes everything that is contained in a part. Returns true if the removal is allowed or has been done. */
  async function empty(fence: number, part: Part, nowMs: number, look: boolean): Promise<boolean> {
    const may = await purge(PURGE_PART, part, { fence, gen: part.gen, look: 1 });
    if (!may || look) return may;
    await settle(part, nowMs);
    if (!(await purge(PURGE_PART, part, { fence, gen: part.gen, look: 0 }))) return false;
    await remove(part, fence, nowMs);
    return true;
  }

  return { purge, remove, empty };
}

/**
 * Creates a ControlSweep for parts, and for the controller's record of them. If the stream or the part of an inbox is
 * not known, no cleanup is needed, because each part will sweep slots that don't have a row.
 *
 * @param patch writes to the hashes of the cluster, fenced
 */
export function createPartControlSweep(
  redis: RedisClient & ScriptClient,
  patch: (fence: number, patches: readonly SlotPatch[]) => Promise<void>,
): ControlSweep {
  const listed = createListedParts(redis, patch);
  const gate = createGate(redis);
  const record = createRecordSweep(redis);
  const { purge, remove, empty } = createPurge(redis);

  async function partOf({ stream }: StoredInbox): Promise<Part | undefined> {
    return stream && readPart(redis, stream.tenant, stream.queue);
  }

  return {
    purgeIntegration: record.purgeIntegration,
    purgeTenant: record.purgeTenant,

    async purgeQueue(fence, { tenant, queue, gen }, nowMs, look) {
      const part = { tenant, queue, gen, number: PART_NUMBER };
      if (!(await empty(fence, part, nowMs, look))) return false;
      if (!look) await listed.remove(fence, [part]);
      return record.purgeQueue(fence, tenant, queue, gen, look);
    },

    async purgePart(fence, part, nowMs, look) {
      const { gen, state, was } = await redis.readHash(partKeys(part).meta);
      // If the record of its stream has been lost, it is not closed by anyone else.
      if (gen !== undefined && state === 'open') {
        if (look) return true;
        const { answer } = await gate({ ...part, gen }, fence, [{ kind: 'meta', field: 'state', value: 'closing' }]);
        if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${part.queue}`);
      }
      const current = gen === undefined || gen === REMOVED ? part.gen : gen;
      const may = await empty(fence, { ...part, gen: current }, nowMs, look);
      if (!may || look) return may;
      for (const other of new Set([part.gen, was])) {
        if (other !== undefined && other !== current) await remove({ ...part, gen: other }, fence, nowMs);
      }
      await listed.remove(fence, [part]);
      return true;
    },

    async purgeInbox(fence, inbox, _nowMs, retentionMs, look) {
      const part = await partOf(inbox);
      const slot = slotOf(inbox.sub, inbox.inc);
      const args = { fence, slot, retentionMs, look: look ? 1 : 0 };
      if (part !== undefined && !(await purge(PURGE_SLOT, part, args))) return false;
      return record.purgeInbox(fence, inbox, look);
    },
  };
}

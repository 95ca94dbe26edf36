import { isRef } from '../../core/ids/refs.ts';
import type { DeliveryRef, FinishAnswer, InboxOperations, PulledEvent } from '../../plane/inbox-operations.ts';
import { isReplayId, replayOf } from '../../plane/inbox-ref.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript } from '../call.ts';
import { createReadDetails, type Details, type PartDelivery } from '../inbox/details.ts';
import type { FindSlot, PartClient, SlotOfPart } from '../inbox/find-part.ts';
import { inboxRefOf, partBoundOf, partRefOf } from '../inbox/ref-names.ts';
import { partKeys } from '../keys.ts';
import { createReadBodies } from '../log/read-bodies.ts';
import { createFinish, FINISHED_AT_ONCE, type Keyed } from './finish.ts';

const PULL = readNamedScript(new URL('pull.lua', import.meta.url));
const CLAIMED = readNamedScript(new URL('claimed.lua', import.meta.url));
const PULLED = 250;
const PULLED_BYTES = 4 * 1024 * 1024;
/** The number of bodies that are read by a call. Each of them has at most 256 KiB. */
const BODIES_AT_ONCE = 16;
/** A byte that sorts after all lanes of a slot, because a group key can't contain it. */
const LAST_BYTE = Buffer.from([255]);

/** The operations of an integration on its inbox in a part. Same as `createInboxOperations`. */
export function createPartInboxOperations(redis: PartClient, findSlot: FindSlot): InboxOperations {
  const finish = createFinish(redis);
  const finishEach = createFinishEach(redis);

  /** Claimed events up to a ref. Claimed events are stored separately from waiting events. */
  async function readClaimed({ part, slot }: SlotOfPart, upTo: string, groupKey: string | undefined): Promise<Keyed[]> {
    const keys = partKeys(part);
    const [flight] = String(await redis.call('hget', keys.counts, slot)).split(' ');
    const found: Keyed[] = [];
    for (let cursor = '0'; flight !== '0' && flight !== 'null'; ) {
      const [, next, ...flat] = (await callScript(redis, CLAIMED, {
        keys,
        args: { slot, cursor },
      })) as readonly string[];
      for (let at = 0; at < flat.length; at += 2) {
        const [key, ref] = flat.slice(at, at + 2) as [string, string];
        if (ref <= upTo && (groupKey === undefined || key === groupKey)) found.push({ key, ref });
      }
      cursor = next as string;
      if (cursor === '0') break;
    }
    return found;
  }

  return {
    async skip(inbox, delivery) {
      const at = await findSlot(inbox);
      const answers = at === undefined ? 'GONE' : await finishEach(at, 's', [delivery]);
      return typeof answers === 'string' ? 'GONE' : (answers[0] as FinishAnswer);
    },

    async skipUpTo(inbox, ref, { groupKey, cursor } = {}) {
      if (!isRef(ref)) return { answer: 'BAD_REF' };
      const after = cursor === undefined ? undefined : Buffer.from(cursor, 'base64url').toString();
      if (after !== undefined && !isMemberOf(after, groupKey)) return { answer: 'BAD_CURSOR' };
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      const { part, slot } = at;
      const upTo = partBoundOf(ref);
      const claimed = after === undefined ? await readClaimed(at, upTo, groupKey) : [];
      const from =
        after !== undefined ? `(${slot}${after}` : `[${slot}${groupKey === undefined ? '' : `${groupKey}\0`}`;
      const last = Buffer.concat([Buffer.from(`(${slot}`), LAST_BYTE]);
      const to = groupKey === undefined ? last : `[${slot}${groupKey}\0${upTo}`;
      const slice = ['limit', 0, FINISHED_AT_ONCE] as const;
      const members = (await redis.call('zrangebylex', partKeys(part).pending, from, to, ...slice)) as string[];
      const waiting = members
        .map(member => ({ key: member.slice(8, -16), ref: member.slice(-15) }))
        .filter(item => item.ref <= upTo && replayOf(item.key) === undefined);
      const letters = await finish(at, 's', [...claimed, ...waiting]);
      if (letters === 'GONE' || letters === 'PUSHED') return { answer: 'GONE' };
      const next = members.length < FINISHED_AT_ONCE ? undefined : (members.at(-1) as string).slice(8);
      return {
        answer: 'OK',
        skipped: letters.filter(letter => letter === 'o').length,
        cursor: next === undefined ? undefined : Buffer.from(next).toString('base64url'),
      };
    },

    async acknowledge(inbox, deliveries) {
      if (deliveries.length > 250) throw new RangeError('at most 250 are acknowledged at once');
      const at = await findSlot(inbox);
      const answers = at === undefined ? 'GONE' : await finishEach(at, 'd', deliveries);
      return typeof answers === 'string' ? { answer: answers } : { answer: 'OK', answers };
    },

    async pull(inbox, { limit, all }) {
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      const args = { gen: at.part.gen, slot: at.slot, most: Math.min(limit, PULLED), all: all === true ? 1 : 0 };
      const [word, more, ...pairs] = await callScript(redis, PULL, { keys: partKeys(at.part), args });
      if ((word as string) !== 'OK') return { answer: word as 'GONE' };
      const open: PartDelivery[] = [];
      for (let i = 0; i < pairs.length; i += 2) {
        open.push({ ref: pairs[i + 1] as string, replayId: replayOf(pairs[i] as string) });
      }
      return { answer: 'OK', ...(await readPulled(redis, at, open, more === 1)) };
    },
  };
}

/** Reads pulled events, up to about 4 MiB. */
async function readPulled(redis: PartClient, at: SlotOfPart, open: readonly PartDelivery[], more: boolean) {
  const readDetails = createReadDetails(redis);
  const readBodies = createReadBodies(redis);
  const events: PulledEvent[] = [];
  let bytes = 0;
  for (let done = 0; done < open.length; ) {
    if (bytes >= PULLED_BYTES) return { events, more: true };
    const asked = open.slice(done, done + BODIES_AT_ONCE);
    const details = await readDetails(at, asked);
    if (details === 'GONE') break;
    const refs = asked.slice(0, details.length).map(({ ref }) => ref);
    const bodies = await readBodies(at.part, refs);
    for (const [i, { event }] of details.entries()) {
      const { ref, replayId } = asked[i] as PartDelivery;
      const body = bodies[i] as Buffer;
      done++;
      // Retention is about to end it.
      if (event === undefined || body.length !== event.bytes) continue;
      const { groupKey, meta } = event;
      bytes += body.length;
      events.push({ ref: inboxRefOf(ref), ...(replayId === undefined ? {} : { replayId }), groupKey, meta, body });
    }
  }
  return { events, more };
}

/** Ends open deliveries of an inbox. Returns a result for each delivery, or a single result for all of them. */
function createFinishEach(redis: PartClient) {
  const finish = createFinish(redis);
  const readDetails = createReadDetails(redis);

  async function readAll(at: SlotOfPart, deliveries: readonly PartDelivery[]): Promise<Details[] | 'GONE'> {
    const all: Details[] = [];
    while (all.length < deliveries.length) {
      const some = await readDetails(at, deliveries.slice(all.length));
      if (some === 'GONE') return 'GONE';
      all.push(...some);
    }
    return all;
  }

  return async function finishEach(
    at: SlotOfPart,
    outcome: 's' | 'd',
    deliveries: readonly DeliveryRef[],
  ): Promise<FinishAnswer[] | 'GONE' | 'PUSHED'> {
    const answers: FinishAnswer[] = deliveries.map(() => 'UNKNOWN');
    const known: (PartDelivery & { readonly n: number })[] = [];
    for (const [n, { ref, replayId }] of deliveries.entries()) {
      const own = partRefOf(ref);
      if (own !== undefined && (replayId === undefined || isReplayId(replayId))) known.push({ n, ref: own, replayId });
    }
    const before = await readAll(at, known);
    if (before === 'GONE') return 'GONE';
    const keyed = known.map(({ ref, replayId }, i): Keyed => {
      const groupKey = before[i]?.event?.groupKey ?? '';
      return { key: replayId === undefined ? groupKey : `${groupKey}\x01${replayId}`, ref };
    });
    const letters = await finish(at, outcome, keyed);
    if (letters === 'GONE' || letters === 'PUSHED') return letters;
    // If a delivery was not open, its outcome is from the process that has ended it. This may have happened in the
    // meantime.
    const ended = known.filter((_, i) => letters[i] !== 'o');
    const after = await readAll(at, ended);
    if (after === 'GONE') return 'GONE';
    for (const [i, { n }] of known.entries()) if (letters[i] === 'o') answers[n] = 'OK';
    for (const [i, { n }] of ended.entries()) {
      const progress = after[i]?.progress;
      if (progress?.endedMs !== undefined) answers[n] = progress.state as FinishAnswer;
    }
    return answers;
  };
}

function isMemberOf(member: string, groupKey: string | undefined): boolean {
  if (!/\0[0-9a-f]{15}$/.test(member)) return false;
  return groupKey === undefined || member.slice(0, -16) === groupKey;
}

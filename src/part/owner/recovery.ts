import type { InboxRecovery } from '../../plane/inbox-recovery.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { callScript } from '../call.ts';
import { recordKeysOf } from '../inbox/details.ts';
import type { FindSlot, PartClient, SlotOfPart } from '../inbox/find-part.ts';
import { readPermissions } from '../inbox/permissions.ts';
import { inboxRefOf } from '../inbox/ref-names.ts';
import { createWalkSlot, type FoundDelivery } from '../inbox/walk.ts';
import { partKeys } from '../keys.ts';

const RECOVER = readNamedScript(new URL('recover.lua', import.meta.url));
const SEND_TEST = readNamedScript(new URL('send-test.lua', import.meta.url));
const STATES = ['dead', 'retrying'] as const;
const PAGE_EVENTS = 1_000;
const PAGES_AT_ONCE = 20;
const RECOVERED_AT_ONCE = 100;
const OPEN_TESTS = 10;
/** The maximum number of test events for each millisecond. */
const TEST_NUMBERS = 32;
/** The time for which a test event is sent once for a call. */
const TEST_CALL_MS = 24 * 3_600_000;
const CURSOR = /^(dead|retrying):([0-9a-f]{15}(?::[\w-]{1,64})?)?$/;

/**
 * Returns true if a delivery has ended permanently, which is the case if it has been recovered before, or if it is a
 * replay.
 */
function needsReplay({ replayId, progress: { state, recovered } }: FoundDelivery): boolean {
  return state === 'dead' && (replayId !== undefined || recovered === true);
}

const nameOf = ({ ref, replayId = '' }: FoundDelivery) => `${ref}:${replayId}`;

/** Returns the number of recovered events, or undefined if the subscription was removed. */
async function recoverThese(
  redis: PartClient,
  { part, slot }: SlotOfPart,
  found: readonly FoundDelivery[],
): Promise<number | undefined> {
  const events = found.filter(each => !needsReplay(each));
  let recovered = 0;
  for (let done = 0; done < events.length; ) {
    const some = events.slice(done, done + RECOVERED_AT_ONCE);
    const { listed, indexes } = recordKeysOf(
      part,
      some.map(({ ref }) => ref),
    );
    const [word, count, left] = await callScript(redis, RECOVER, {
      keys: partKeys(part),
      listed,
      args: { gen: part.gen, slot },
      more: some.flatMap(({ ref, replayId }, i) => [ref, replayId ?? '', indexes[i] as number]),
    });
    if (word !== 'OK') return undefined;
    recovered += count as number;
    done += some.length - (left as number);
  }
  return recovered;
}

/**
 * Recovers failed events of a part, and sends test events. Same as `createInboxRecovery`.
 *
 * @param pageEvents number of events per step
 */
export function createPartInboxRecovery(
  redis: PartClient,
  findSlot: FindSlot,
  pageEvents = PAGE_EVENTS,
): InboxRecovery {
  const walk = createWalkSlot(redis);
  let tests = 0;

  return {
    async recover(inbox, { sinceMs, cursor, mayGoOn = () => true }) {
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      const permissions = await readPermissions(redis, at, []);
      if (typeof permissions === 'string') return { answer: permissions };
      const text = cursor === undefined ? 'dead:' : Buffer.from(cursor, 'base64url').toString();
      const [, first, from] = CURSOR.exec(text) ?? [];
      if (first === undefined) return { answer: 'BAD_CURSOR' };
      let [recovered, replayRequired, pages] = [0, 0, 0];
      const reopened = new Set<string>();
      let next: string | undefined;
      for (const state of STATES.slice(STATES.indexOf(first as 'dead'))) {
        let after = state === first ? from : undefined;
        do {
          if (pages === PAGES_AT_ONCE || (pages > 0 && !mayGoOn())) {
            next = `${state}:${after ?? ''}`;
            break;
          }
          const page = await walk(at, { states: [state], fromMs: sinceMs, after, most: pageEvents });
          if (page.answer !== 'OK') return { answer: 'GONE' };
          const found = page.events.filter(each => !reopened.has(nameOf(each)));
          const count = await recoverThese(redis, at, found);
          if (count === undefined) return { answer: 'GONE' };
          recovered += count;
          replayRequired += found.filter(each => needsReplay(each) && each.event !== undefined).length;
          // Note the reopened deliveries, which may fail again during this call and then wait for a retry.
          if (state === 'dead') for (const each of found) reopened.add(nameOf(each));
          after = page.after;
          pages++;
        } while (after !== undefined);
        if (next !== undefined) break;
      }
      const following = next === undefined ? undefined : Buffer.from(next).toString('base64url');
      return { answer: 'OK', recovered, replayRequired, cursor: following };
    },

    async sendTest(inbox, once) {
      const at = await findSlot(inbox);
      if (at === undefined) return { answer: 'GONE' };
      const number = tests++ % TEST_NUMBERS;
      const args = { gen: at.part.gen, slot: at.slot, number, most: OPEN_TESTS, ttlMs: TEST_CALL_MS };
      const keys = partKeys(at.part);
      const listed = once === undefined ? [] : [keys.chunks(at.slot, `test.${once}`)];
      const [word, ref] = await callScript(redis, SEND_TEST, { keys, listed, args });
      return word === 'OK' ? { answer: 'OK', ref: inboxRefOf(ref as string) } : { answer: word as 'GONE' };
    },
  };
}

import { testRef } from '../core/events/test-event.ts';
import { refMs, streamIdOfRef } from '../core/ids/refs.ts';
import type { Argument } from './client.ts';
import { type InboxOperationsDeps, wakeInbox } from './inbox-operations.ts';
import { type Permission, readPermissions } from './inbox-reader.ts';
import type { InboxRef } from './inbox-store.ts';
import { type WalkedEvent, walkInbox } from './inbox-walk.ts';
import { bucketOf, inboxKeys, integrationKeys } from './keys.ts';

type Refused = Exclude<Permission, 'OPEN' | 'INACTIVE'>;

/** What an integration does when its endpoint was away: try it, and let come again what failed. Both are free. */
export interface InboxRecovery {
  /**
   * Makes failed deliveries of events that were accepted from `sinceMs` on due at once: those that wait for a retry, and
   * dead letters, which have all their retries before them again. In order; no replay, and charged to nobody. Looks at
   * 20,000 a call: to be called again with the cursor while it gives one.
   */
  readonly recover: (
    inbox: InboxRef,
    range: { readonly sinceMs: number; readonly cursor?: string | undefined },
  ) => Promise<
    | { readonly answer: 'OK'; readonly recovered: number; readonly cursor: string | undefined }
    | { readonly answer: Refused | 'BAD_CURSOR' }
  >;
  /**
   * Sends a test event to the endpoint: one attempt, signed and recorded as any other, but no event of the producer.
   * HELD: the endpoint may not be called. PULLED: there is none. MANY: too many are open.
   */
  readonly sendTest: (
    inbox: InboxRef,
  ) => Promise<
    { readonly answer: 'OK'; readonly ref: string } | { readonly answer: Refused | 'HELD' | 'PULLED' | 'MANY' }
  >;
}

const STATES = ['dead', 'retrying'] as const;
const PAGE_EVENTS = 1_000;
const PAGES_AT_ONCE = 20;
const RECOVERED_AT_ONCE = 200;
const OPEN_TESTS = 10;
const CURSOR = /^(dead|retrying):([0-9a-hjkmnp-tv-z]{15}(?::[\w-]{1,64})?)?$/;

/** @param deps.pageEvents found in one step; default 1,000 */
export function createInboxRecovery(deps: InboxOperationsDeps & { readonly pageEvents?: number }): InboxRecovery {
  const { redis, nowMs, pageEvents = PAGE_EVENTS } = deps;
  let tests = 0;

  async function recoverThese(inbox: InboxRef, events: readonly WalkedEvent[]): Promise<number | undefined> {
    const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
    const sub = integrationKeys(inbox.integration).sub(inbox.sub);
    let recovered = 0;
    for (let at = 0; at < events.length; at += RECOVERED_AT_ONCE) {
      const keys = [sub, x.log, x.pending, x.due, x.claims, x.tries, x.final];
      const args: Argument[] = [nowMs(), inbox.inc];
      const buckets = new Map<number, number>();
      for (const { ref, replayId } of events.slice(at, at + RECOVERED_AT_ONCE)) {
        const bucket = bucketOf(refMs(ref));
        let index = buckets.get(bucket);
        if (index === undefined) {
          index = keys.push(x.records(bucket));
          buckets.set(bucket, index);
        }
        args.push(ref, replayId ?? '', streamIdOfRef(ref), index);
      }
      const [word, count] = (await redis.run('recover', keys, args)) as [string, number];
      if (word !== 'OK') return undefined;
      recovered += count;
    }
    return recovered;
  }

  return {
    async recover(inbox, { sinceMs, cursor }) {
      const permissions = await readPermissions(redis, inbox, []);
      if (typeof permissions === 'string') return { answer: permissions };
      const text = cursor === undefined ? 'dead:' : Buffer.from(cursor, 'base64url').toString();
      const [, first, from] = CURSOR.exec(text) ?? [];
      if (first === undefined) return { answer: 'BAD_CURSOR' };
      let recovered = 0;
      let pages = 0;
      let next: string | undefined;
      for (const state of STATES.slice(STATES.indexOf(first as 'dead'))) {
        let after = state === first ? from : undefined;
        do {
          if (pages === PAGES_AT_ONCE) {
            next = `${state}:${after ?? ''}`;
            break;
          }
          const page = await walkInbox(redis, inbox, { states: [state], fromMs: sinceMs, after, most: pageEvents });
          const count = page.answer === 'OK' ? await recoverThese(inbox, page.events) : undefined;
          if (page.answer !== 'OK' || count === undefined) return { answer: 'GONE' };
          recovered += count;
          after = page.after;
          pages++;
        } while (after !== undefined);
        if (next !== undefined) break;
      }
      // Also when nothing was left to do: who did it may have died before this.
      await wakeInbox(deps, inbox);
      return {
        answer: 'OK',
        recovered,
        cursor: next === undefined ? undefined : Buffer.from(next).toString('base64url'),
      };
    },

    async sendTest(inbox) {
      const i = integrationKeys(inbox.integration);
      const x = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
      const ref = testRef(nowMs(), tests++);
      const args = [nowMs(), inbox.inc, ref, OPEN_TESTS];
      const word = (await redis.run('send-test', [i.meta, i.sub(inbox.sub), x.pending, x.due], args)) as string;
      if (word !== 'OK') return { answer: word as 'GONE' };
      await wakeInbox(deps, inbox);
      return { answer: 'OK', ref };
    },
  };
}

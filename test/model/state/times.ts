import { generationOf } from '../../../src/core/ids/ids.ts';
import { integrationKeys } from '../../../src/redis/keys.ts';
import type { TenantNames } from './control-state.ts';
import { type Definition, integrationId } from './definition.ts';
import type { Receiver } from './expectation.ts';
import type { RedisDump } from './redis-dump.ts';
import { hold } from './violation.ts';

/** The times that Redis remembers and no object does: since when a pair is open, and where a skipped pause ended. */
export type Times = ReturnType<typeof createTimes>;

export function createTimes({ name, integrations }: TenantNames) {
  let since = new Map<string, number>();
  const skips = new Map<string, number>();
  /** Subscriptions whose last Block went in this step, and all said SkipToNow. */
  let ended = new Set<string>();
  /** The same, and the stream went with it: before or after. */
  let maybeEnded = new Set<string>();
  let wasCertain = true;

  /** It is the time of opening, and stays while open: it decides what a pause may bring back. */
  function watchSince(dump: RedisDump, certain: boolean, nowMs: number): void {
    const now = new Map<string, number>();
    for (const integration of integrations) {
      const { act } = integrationKeys(integrationId(name, integration));
      for (const [groupKey, ms] of Object.entries(dump.hashes.get(act) ?? {})) {
        const pair = `${integration}/${groupKey}`;
        const before = since.get(pair);
        now.set(pair, Number(ms));
        hold(6, Number(ms) <= nowMs, () => `${name}'s activation ${pair} is open from the future on`);
        const kept = before === undefined || before === Number(ms) || !certain;
        hold(9, kept, () => `${name}'s activation ${pair} lost the time since when it is open`);
      }
    }
    since = now;
  }

  /** `skipTo` moves when the last Block goes and all of them said SkipToNow, and never else. */
  function watchSkip({ uid, name: receiver }: Receiver, own: Readonly<Record<string, string>>, nowMs: number): void {
    const at = Number(own.skipTo ?? 0);
    const had = skips.get(uid) ?? 0;
    const right = ended.has(uid) ? at === nowMs : at === had;
    const why = ended.has(uid) ? 'a pause with SkipToNow ended' : 'no pause with SkipToNow ended';
    hold(
      3,
      right || !wasCertain || maybeEnded.has(uid),
      () => `${name}'s ${receiver} skips to ${at} after ${had}, and ${why}`,
    );
    skips.set(uid, at);
  }

  return {
    watch(dump: RedisDump, own: ReadonlyMap<Receiver, string>, certain: boolean, nowMs: number): void {
      watchSince(dump, certain, nowMs);
      wasCertain &&= certain;
      for (const [receiver, key] of own) {
        const hash = dump.hashes.get(key);
        if (hash?.inc === generationOf(receiver.uid)) watchSkip(receiver, hash, nowMs);
      }
      ended = new Set();
      maybeEnded = new Set();
      wasCertain = certain;
    },
    /** What is applied became something else. */
    noteChange(before: Definition | undefined, after: Definition): void {
      for (const [uid, { covers, route }] of after.subscriptions) {
        const had = before?.subscriptions.get(uid);
        const skipped = had?.route === 'paused' && had.covers === 'skip' && covers === 'none';
        if (skipped) (route === 'closed' ? maybeEnded : ended).add(uid);
      }
    },
    /** Redis has lost them. */
    forget(integration: string, receivers: Iterable<Receiver>): void {
      for (const pair of since.keys()) if (pair.startsWith(`${integration}/`)) since.delete(pair);
      for (const receiver of receivers) if (receiver.integration === integration) skips.delete(receiver.uid);
    },
  };
}

import { expect, test } from 'vitest';
import type { Claim, Completion } from './inbox-store.ts';
import { onEachRedis } from './testing/each-redis.ts';
import { createInbox } from './testing/inbox.ts';

const LEASE_MS = 25_000;
const FAILURES = 100;
const FIRST_PAUSE_MS = 1_000;

type Held = Claim & { readonly token: string };

onEachRedis(redis => {
  /** One whose breaker is open, with a probe due now, and a lane each of `keys` waiting. */
  async function startOpen(keys: readonly string[]) {
    const failing = Array.from({ length: FAILURES }, (_, i) => `f${i}`);
    const it = await createInbox(redis(), { sub: { cap: 500 } }, [...failing, ...keys]);
    await it.publish(failing);
    const claims = [...(await it.claim()), ...(await it.claim())];
    const dueMs = it.t.nowMs() + 86_400_000;
    const failed = (each: Held): Completion => ({
      lane: each.lane,
      ref: each.ref,
      token: each.token,
      outcome: 'failed',
      dueMs,
      attempt: `${it.t.nowMs()},500,3`,
    });
    await it.t.inboxes.complete(it.inbox, it.t.nowMs(), claims.map(failed));
    if (keys.length > 0) await it.publish(keys);
    expect(await it.claim()).toHaveLength(0);
    it.t.clock.ms += FIRST_PAUSE_MS;
    return it;
  }

  test('a probe that ended without an attempt lets the next one go at once', async () => {
    const it = await startOpen(['a', 'b', 'c']);
    const ends: Partial<Completion>[] = [
      { outcome: 'expired', record: `expired ${it.t.nowMs()} 0 expired -` },
      { outcome: 'dead', record: `dead ${it.t.nowMs()} 0 poison -` },
    ];
    for (const end of ends) {
      const [probe] = await it.claim();
      expect(await it.claim()).toHaveLength(0);
      expect(await it.end(probe as Held, end)).toBe('OK');
    }
    expect(await it.claim()).toHaveLength(1);
  });

  test('a probe whose event was skipped meanwhile holds nobody', async () => {
    const it = await startOpen(['a', 'b']);
    const [probe] = await it.claim();
    await it.operations.skip(it.inbox, { ref: (probe as Held).ref });
    expect(await it.end(probe as Held)).toBe('GONE');
    expect(await it.claim()).toHaveLength(1);
  });

  test('a clock that was set back holds nobody until it has caught up', async () => {
    const it = await startOpen([]);
    it.t.clock.ms -= 600_000;
    await it.t.activate('x', 'b');
    await it.publish(['b']);
    expect(await it.claim()).toHaveLength(1);
    expect(await it.claim()).toHaveLength(0);
  });

  test('410 is told at once, also when nothing is sent any more meanwhile', async () => {
    const it = await createInbox(redis());
    await it.publish(['a', 'b']);
    const [one] = (await it.claim(1)) as [Held];
    await it.say({ sub: { send: 'held' } });
    const gone = { lane: one.lane, ref: one.ref, token: one.token, outcome: 'gone', attempt: '1,410,3' } as const;
    const claiming = { room: 5, token: 'next', leaseMs: LEASE_MS };
    expect(await it.t.inboxes.exchange(it.inbox, it.t.nowMs(), [gone], claiming)).toMatchObject({ disabled: true });
    // Said once: it is not asked for where nothing is sent.
    expect(await it.t.inboxes.exchange(it.inbox, it.t.nowMs(), [], claiming)).toMatchObject({
      claimed: { answer: 'PAUSED' },
    });
  });
});

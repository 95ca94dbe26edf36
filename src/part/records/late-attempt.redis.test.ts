import { expect, test } from 'vitest';
import { startPart } from '../../../test/support/part/part.ts';
import { createPartInbox } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import type { Completion } from '../claims/exchange.ts';
import type { Claim } from '../claims/message.ts';
import { createFinish } from '../owner/finish.ts';

onEachRedis(redis => {
  test.each<[string, Completion['outcome'], object, object]>([
    ['is delivered', 'delivered', { record: 'delivered 1 1 200 9' }, { attempts: 1, history: [{ result: '200' }] }],
    ['fails', 'failed', { dueMs: 1, attempt: '1,500,9' }, { attempts: 1, history: [{ result: '500' }] }],
    ['fails for good', 'dead', { record: 'dead 1 1 500 9' }, { attempts: 1, history: [{ result: '500' }] }],
    ['is answered with a 410', 'gone', { attempt: '1,410,9' }, { attempts: 1, history: [{ result: '410' }] }],
    ['is not sent', 'released', { attempt: '1,released,-' }, { attempts: 0, history: [] }],
  ])('the attempt of an event that is skipped in the meantime and %s', async (_, outcome, ended, made) => {
    const inbox = await createPartInbox(redis());
    const [ref, next] = (await inbox.publish(['a', 'a'])) as [string, string];
    const [claim] = (await inbox.claim(1)) as [Claim];
    expect(await inbox.operations.skip(inbox.inbox, { ref })).toBe('OK');
    const skippedMs = inbox.t.nowMs();
    inbox.t.clock.ms += 2_000;
    const responseBody = outcome === 'failed' ? { responseBody: Buffer.from('no') } : {};
    expect(await inbox.end(claim, { outcome, ...ended, ...responseBody })).toBe('ended');
    const read = async () => {
      const found = await inbox.reader.inspect(inbox.inbox, ref);
      return found.answer === 'OK' ? found.event : undefined;
    };
    const shown = await read();
    expect(shown?.progress).toMatchObject({ state: 'skipped', reason: 'skipped', endedMs: skippedMs, ...made });
    expect(shown?.responses.map(({ attempt }) => attempt)).toEqual(outcome === 'failed' ? [1] : []);
    expect(await inbox.count()).toMatchObject({ routed: 2, skipped: 1, open: 1 });
    const { out = ' 0 0 0' } = await inbox.t.hash('meta');
    expect(out).toMatch(['failed', 'dead', 'gone'].includes(outcome) ? / 0 1 0$/ : / 0 0 0$/);
    expect((await inbox.claim()).map(each => each.ref)).toEqual([next]);
  });

  test('attempts are added to the records of all chunks', async () => {
    const names = Array.from({ length: 150 }, (_, n) => `s${n}`);
    const { t, d } = await startPart(redis(), Object.fromEntries(names.map(name => [name, {}])), ['k']);
    const finish = createFinish(t.client);
    const [ref = ''] = await t.send('k');
    while (d.held.size < names.length) expect((await d.exchange(64)).claims).not.toEqual([]);
    const claims = [...d.held.values()];
    for (const name of names) {
      expect(await finish({ part: t.part, slot: t.slot(name) }, 's', [{ key: 'k', ref }])).toEqual(['o']);
    }
    t.clock.ms += 1_000;
    for (const claim of claims) d.end(claim, 'delivered', { reason: '204', latencyMs: 31 });
    const { answers } = await d.exchange();
    expect(new Set(answers)).toEqual(new Set(['ended']));
    const records = await t.records(ref);
    expect(records.map(({ slot }) => slot).toSorted()).toEqual(names.map(t.slot).toSorted());
    const failed = [{ endedMs: t.clock.ms, reason: '204', latencyMs: 31 }];
    for (const record of records) expect(record).toMatchObject({ outcome: 'skipped', attempts: 1, failed });
    expect(records.every(({ endedMs }) => endedMs === t.clock.ms - 1_000)).toBe(true);
  });
});

import { expect, test } from 'vitest';
import { createPartInbox, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { sweepAll } from '../sweep/testing/sweep-all.ts';

const RETENTION_MS = 3_600_000;

onEachRedis(redis => {
  const listed = async ({ reader, inbox }: PartInbox) => {
    const page = await reader.list(inbox, { limit: 250 });
    return page.answer === 'OK' ? page.events.map(({ ref }) => ref) : page.answer;
  };
  async function start() {
    const inbox = await createPartInbox(redis());
    await inbox.part.change({ kind: 'meta', field: 'retentionMs', value: String(RETENTION_MS) });
    return inbox;
  }
  async function fill(inbox: PartInbox, events: number): Promise<string[]> {
    const refs: string[] = [];
    while (refs.length < events) refs.push(...(await inbox.publish(Array.from({ length: 10 }, () => 'a'))));
    return refs;
  }
  /** Removes all events that were published before `afterMs`. */
  async function retain({ part }: PartInbox, afterMs: number) {
    part.clock.ms += afterMs;
    return sweepAll(part);
  }
  const fields = ({ t }: PartInbox) => redis().call('hlen', t.keys.lists);

  test('retention removes whole chunks and keeps the order of the rest', async () => {
    const inbox = await start();
    await inbox.part.setRow('other', {});
    await inbox.part.activate('other', 'a');
    await fill(inbox, 40);
    inbox.part.clock.ms += RETENTION_MS / 2;
    const young = await fill(inbox, 60);
    expect(await fields(inbox)).toBe(14);
    expect(await retain(inbox, RETENTION_MS / 2 + 1)).toMatchObject({ events: 40 });
    // Two chunks of each list only contain expired events.
    expect(await fields(inbox)).toBe(10);
    expect(await listed(inbox)).toEqual(young);
    const more = await fill(inbox, 20);
    expect(await listed(inbox)).toEqual([...young, ...more]);
  });

  test('removes a list without recent events, which can be used again', async () => {
    const inbox = await start();
    await fill(inbox, 40);
    await retain(inbox, RETENTION_MS + 1);
    expect(await redis().call('exists', inbox.t.keys.lists)).toBe(0);
    const refs = await fill(inbox, 40);
    expect(await listed(inbox)).toEqual(refs);
  });

  test('removes the list of a deleted subscription in several calls and keeps other lists', async () => {
    const inbox = await start();
    await inbox.part.setRow('other', {});
    await inbox.part.activate('other', 'a');
    await fill(inbox, 1_100);
    const before = (await fields(inbox)) as number;
    await inbox.drain();
    await inbox.part.change({ kind: 'drop', slot: inbox.slot, how: 'delete' });
    expect((await sweepAll(inbox.part)).calls).toBeGreaterThan(2);
    expect(await fields(inbox)).toBe(before / 2);
    const left = (await redis().call('hkeys', inbox.t.keys.lists)) as string[];
    expect(left.filter(field => field.startsWith(inbox.slot))).toEqual([]);
  });
});

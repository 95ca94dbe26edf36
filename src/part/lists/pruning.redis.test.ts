import { expect, test } from 'vitest';
import { createPartInbox, type PartInbox } from '../../../test/support/part/part-inbox.ts';
import { readNamedScript } from '../../redis/named-scripts.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { partRefOf } from '../inbox/ref-names.ts';

const PRUNE = readNamedScript(new URL('prune.lua', import.meta.url));

onEachRedis(redis => {
  const prune = ({ client, t, slot }: PartInbox, keepsFrom: string) =>
    client.runNamed(PRUNE, { keys: t.keys, args: { gen: t.part.gen, keepsFrom }, more: [slot] });
  const listed = async ({ reader, inbox }: PartInbox) => {
    const page = await reader.list(inbox, { limit: 250 });
    return page.answer === 'OK' ? page.events.map(({ ref }) => ref) : page.answer;
  };
  async function fill(inbox: PartInbox, events: number): Promise<string[]> {
    const refs: string[] = [];
    while (refs.length < events) refs.push(...(await inbox.publish(Array.from({ length: 10 }, () => 'a'))));
    return refs;
  }

  test('removes whole chunks before a ref, of one slot, and keeps what is left in order', async () => {
    const inbox = await createPartInbox(redis());
    await inbox.part.setRow('other', {});
    await inbox.part.activate('other', 'a');
    const refs = await fill(inbox, 100);
    expect(await redis().call('hlen', inbox.t.keys.lists)).toBe(14);
    expect(await prune(inbox, partRefOf(refs[40] as string) as string)).toEqual(['OK', 0]);
    expect(await redis().call('hlen', inbox.t.keys.lists)).toBe(12);
    expect(await listed(inbox)).toEqual(refs.slice(32));
    const more = await fill(inbox, 20);
    expect(await listed(inbox)).toEqual([...refs.slice(32), ...more]);
  });

  test('of all that a slot has leaves nothing, and begins anew', async () => {
    const inbox = await createPartInbox(redis());
    await fill(inbox, 40);
    expect(await prune(inbox, 'g')).toEqual(['OK', 0]);
    expect(await redis().call('exists', inbox.t.keys.lists)).toBe(0);
    const refs = await fill(inbox, 40);
    expect(await listed(inbox)).toEqual(refs);
  });

  test('does 64 chunks a call', async () => {
    const inbox = await createPartInbox(redis());
    await fill(inbox, 1_100);
    expect(await prune(inbox, 'g')).toEqual(['OK', 1]);
    expect(await prune(inbox, 'g')).toEqual(['OK', 0]);
    expect(await redis().call('exists', inbox.t.keys.lists)).toBe(0);
  });
});

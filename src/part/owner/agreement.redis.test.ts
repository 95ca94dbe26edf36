import { expect, test } from 'vitest';
import { createPartInbox } from '../../../test/support/part/part-inbox.ts';
import { onEachRedis } from '../../redis/testing/each-redis.ts';
import { createInbox } from '../../redis/testing/inbox.ts';

/** Random operations on one inbox in both layouts: claims, lists and answers have to be the same. */
const KEYS = ['a', 'b', 'c'] as const;
const STEPS = 40;
const SEEDS = [1, 2, 3, 4, 5, 6, 7, 8];
const OUTCOMES = ['delivered', 'delivered', 'dead', 'failed', 'released'] as const;
const LISTS = [undefined, ['dead', 'skipped'], ['pending', 'retrying', 'inflight'], ['delivered', 'dead']] as const;

function createRandom(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

onEachRedis(redis => {
  test.each(SEEDS)('both layouts agree, seed %i', async seed => {
    const random = createRandom(seed);
    const unordered = seed % 4 === 0;
    const queue = await createInbox(redis(), { sub: { unordered } }, KEYS);
    const part = await createPartInbox(redis(), { sub: { unordered } }, KEYS);
    /** Refs in both layouts, by the number of the event. */
    const refs: { queue: string; part: string }[] = [];
    const numberOf = (layout: 'queue' | 'part', ref: string) => refs.findIndex(each => each[layout] === ref);
    const flying = new Map<string, { queue: never; part: never }>();
    const done: string[] = [];
    let replays = 0;
    for (const { setAccount } of [queue, part]) await setAccount('Metered', 0);

    async function both<Answer>(ofQueue: () => Promise<Answer>, ofPart: () => Promise<Answer>): Promise<Answer> {
      const [a, b] = [await ofQueue(), await ofPart()];
      expect(b, done.join(', ')).toEqual(a);
      return a;
    }
    const chosen = () => random(refs.length);

    async function claim() {
      const nameOf = (layout: 'queue' | 'part', { lane, ref }: { lane: string; ref: string }) =>
        `${lane.split('\0')[0]} ${numberOf(layout, ref)}`;
      const ofQueue = await queue.claim();
      const ofPart = await part.claim();
      const byName = new Map(ofPart.map(each => [nameOf('part', each), each]));
      await both(
        async () => ofQueue.map(each => nameOf('queue', each)).toSorted(),
        async () => [...byName.keys()].toSorted(),
      );
      for (const each of ofQueue) {
        const name = nameOf('queue', each);
        flying.set(name, { queue: each as never, part: byName.get(name) as never });
      }
    }

    async function end(name: string, outcome: (typeof OUTCOMES)[number]) {
      const claimed = flying.get(name);
      if (claimed === undefined) return;
      flying.delete(name);
      const dueMs = queue.t.nowMs() + 700;
      const { attempts } = claimed.queue as { readonly attempts: number };
      const record = `${outcome} ${queue.t.nowMs()} ${attempts + 1} 500 3`;
      const change = { outcome, record, ...(outcome === 'failed' && { dueMs, attempt: `${queue.t.nowMs()},500,3` }) };
      await queue.end(claimed.queue, change);
      await part.end(claimed.part, change);
    }
    async function giveAllBack() {
      for (const name of flying.keys()) await end(name, 'released');
    }

    async function replay() {
      if (refs.length === 0) return;
      const id = `r${replays++}`;
      const event = refs[chosen()] as (typeof refs)[number];
      const start = async (of: typeof queue | typeof part, ref: string) => {
        const answer = await of.replays.start(of.payer, id, of.inbox, { ref });
        return answer.answer === 'OK' ? [answer.taken, answer.tokens, answer.refunded] : answer.answer;
      };
      await both(
        () => start(queue, event.queue),
        () => start(part, event.part),
      );
    }

    const actions: Record<string, () => Promise<unknown>> = {
      async publish() {
        const keys = Array.from({ length: 1 + random(4) }, () => KEYS[random(3)] as string);
        const [ofQueue, ofPart] = [await queue.publish(keys), await part.publish(keys)];
        for (const [i, ref] of ofQueue.entries()) refs.push({ queue: ref, part: ofPart[i] as string });
      },
      claim,
      async end() {
        for (const name of flying.keys()) {
          if (random(2) === 0) await end(name, OUTCOMES[random(OUTCOMES.length)] as 'dead');
        }
      },
      async wait() {
        const ms = 100 + random(400);
        queue.t.clock.ms += ms;
        part.t.clock.ms += ms;
      },
      async skip() {
        if (refs.length === 0) return;
        const event = refs[chosen()] as (typeof refs)[number];
        await both(
          () => queue.operations.skip(queue.inbox, { ref: event.queue }),
          () => part.operations.skip(part.inbox, { ref: event.part }),
        );
        // In a part, a claim holds the lane until the attempt is over.
        await giveAllBack();
      },
      async skipUpTo() {
        if (refs.length === 0) return;
        const event = refs[Math.floor(chosen() / 2)] as (typeof refs)[number];
        const options = random(2) === 0 ? {} : { groupKey: KEYS[random(3)] };
        await both(
          () => queue.operations.skipUpTo(queue.inbox, event.queue, options),
          () => part.operations.skipUpTo(part.inbox, event.part, options),
        );
        await giveAllBack();
      },
      recover: () =>
        both(
          () => queue.recovery.recover(queue.inbox, { sinceMs: 0 }),
          () => part.recovery.recover(part.inbox, { sinceMs: 0 }),
        ),
      replay,
    };
    const names = [
      'publish',
      'publish',
      'claim',
      'claim',
      'end',
      'end',
      'wait',
      'skip',
      'skipUpTo',
      'recover',
      'replay',
    ];

    async function compare() {
      for (const states of LISTS) {
        const list = async (of: typeof queue | typeof part, layout: 'queue' | 'part') => {
          const page = await of.reader.list(of.inbox, { ...(states && { states }), limit: 250 });
          if (page.answer !== 'OK') return page.answer;
          return page.events.map(({ ref, replayId, groupKey, progress }) => [
            numberOf(layout, ref),
            replayId,
            groupKey,
            progress.state,
            progress.attempts,
            progress.history.length,
            progress.dueMs,
          ]);
        };
        await both(
          () => list(queue, 'queue'),
          () => list(part, 'part'),
        );
      }
      const { open } = await part.count();
      expect((await queue.count()).open).toBe(open);
    }

    for (let step = 0; step < STEPS; step++) {
      const name = names[random(names.length)] as string;
      done.push(name);
      await actions[name]?.();
      await compare();
    }
    expect(refs.length).toBeGreaterThan(3);
    await giveAllBack();
    for (let rounds = 0; rounds < 200; rounds++) {
      queue.t.clock.ms += 800;
      part.t.clock.ms += 800;
      await claim();
      if (flying.size === 0) break;
      for (const each of flying.keys()) await end(each, 'delivered');
    }
    await compare();
    expect((await part.count()).open).toBe(0);
  });
});

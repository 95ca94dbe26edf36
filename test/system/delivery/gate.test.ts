import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { faultsOf, readInbox } from '../support/audit.ts';
import { spread } from '../support/deadline.ts';
import { makeSample, type Sample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, block, pkg } from '../support/world.ts';

/** A group key that is always open for both partners. */
const ALWAYS = 'always';
const KEYS = ['north', 'east', 'south', 'west'];
const CYCLES_PER_KEY = 50;

const world = useSmallWorld({ partners: ['ada', 'bob'], groupKeys: [ALWAYS] });

async function send(id: string, groupKey: string): Promise<Sample> {
  const sample = makeSample(id, groupKey, `body of ${id}`);
  expect((await world.publisher.post(sample)).status).toBe(202);
  return sample;
}

/**
 * Sends an event with a different key and waits until bob has received it. All events accepted before have been claimed
 * as well.
 */
async function awaitMarker(id: string): Promise<void> {
  await send(id, ALWAYS);
  await world.receiver.arrival(id, 'bob');
}

const inboxOf = (partner: string) => readInbox(world, { producer: PRODUCER, partner, name: SUBSCRIPTION });

describe('an activation', () => {
  it(`takes effect for the next event once it is observed, ${KEYS.length * CYCLES_PER_KEY} times open and closed`, async () => {
    const { observer, receiver } = world;
    const opening: number[] = [];
    const closing: number[] = [];
    const closed: string[] = [];
    const sent: Sample[] = [];
    async function cycle(key: string, n: number): Promise<void> {
      const { name } = activation(PRODUCER, 'ada', key).metadata;
      let startedMs = performance.now();
      await observer.apply(activation(PRODUCER, 'ada', key));
      await observer.until(['Activation', name, PRODUCER, 'Effective', 'True/Routing']);
      opening.push(performance.now() - startedMs);
      sent.push(await send(`open-${key}.${n}`, key));
      // Events that are waiting when their gate closes are not sent anymore.
      await world.receiver.arrival(`open-${key}.${n}`, 'ada');
      startedMs = performance.now();
      await observer.apply(activation(PRODUCER, 'ada', key, { revoked: true }));
      await observer.until(['Activation', name, PRODUCER, 'Effective', 'False/Revoked']);
      closing.push(performance.now() - startedMs);
      closed.push((await send(`closed-${key}.${n}`, key)).id);
      await awaitMarker(`past-${key}.${n}`);
    }
    await Promise.all(
      KEYS.map(async key => {
        for (let n = 0; n < CYCLES_PER_KEY; n++) await cycle(key, n);
      }),
    );
    console.log(`kubectl apply to effective: opening ${spread(opening)}; closing ${spread(closing)}`);
    expect(closed).toHaveLength(KEYS.length * CYCLES_PER_KEY);
    expect(closed.filter(id => receiver.attempts.some(attempt => attempt.id === id))).toEqual([]);
    expect((await inboxOf('ada')).routed.filter(({ groupKey }) => KEYS.includes(groupKey))).toHaveLength(sent.length);
    for (const key of KEYS) {
      const ofKey = sent.filter(({ groupKey }) => groupKey === key);
      expect(ofKey).toHaveLength(CYCLES_PER_KEY);
    }
  });

  it('is closed by a second object that is revoked, and cannot be opened by another object', async () => {
    const { observer } = world;
    const first = activation(PRODUCER, 'ada', 'pair');
    const second = { ...first, metadata: { ...first.metadata, name: 'second' } };
    await observer.apply(first);
    await observer.until(['Activation', first.metadata.name, PRODUCER, 'Effective', 'True/Routing']);
    await observer.apply({ ...second, spec: { integration: 'ada', groupKey: 'pair', revoked: true } });
    await observer.until(['Activation', 'second', PRODUCER, 'Effective', 'False/Revoked']);
    await observer.until(['Activation', first.metadata.name, PRODUCER, 'Effective', 'False/RevokedElsewhere']);
    await send('pair.0', 'pair');
    await awaitMarker('past-pair.0');
    await observer.remove('Activation', 'second', PRODUCER);
    await observer.until(['Activation', first.metadata.name, PRODUCER, 'Effective', 'True/Routing']);
    await send('pair.1', 'pair');
    await world.receiver.arrival('pair.1', 'ada');
    expect(world.receiver.delivered('ada').has('pair.0')).toBe(false);
  });
});

describe('a Block', () => {
  it.each([
    ['a stream', { kind: 'CatalogStream', name: QUEUE }],
    ['a package', { kind: 'Package', name: 'everything' }],
  ])('of %s pauses without losing events: 10 times', async (what, target) => {
    const { observer, receiver } = world;
    await observer.apply(pkg(PRODUCER, 'everything', [QUEUE]));
    const prefix = what.replace(' ', '-');
    const samples: Sample[] = [];
    const pausing: number[] = [];
    const resuming: number[] = [];
    for (let n = 0; n < 10; n++) {
      samples.push(await send(`${prefix}.${n}.before`, ALWAYS));
      await observer.apply(block(PRODUCER, 'no-ada', { integration: 'ada', target }));
      pausing.push(await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']));
      const { routed } = await inboxOf('ada');
      for (let i = 0; i < 5; i++) samples.push(await send(`${prefix}.${n}.during-${i}`, ALWAYS));
      await world.receiver.arrival(`${prefix}.${n}.during-4`, 'bob');
      const after = await inboxOf('ada');
      expect(after.routed).toHaveLength(routed.length);
      expect(
        receiver.attempts.filter(({ id, subscription }) => subscription === 'ada' && id.startsWith(`${prefix}.${n}.d`)),
      ).toEqual([]);
      await observer.remove('Block', 'no-ada', PRODUCER);
      const startedMs = performance.now();
      await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
      await world.receiver.arrival(`${prefix}.${n}.during-4`, 'ada');
      resuming.push(performance.now() - startedMs);
    }
    console.log(
      `block of ${what}: to Live=False ${spread(pausing)}; from unblock to the last held event ${spread(resuming)}`,
    );
    const ofThis = new Set(samples.map(({ id }) => id));
    const seen = { ...receiver, attempts: receiver.attempts.filter(({ id }) => ofThis.has(id)) };
    expect(faultsOf(seen, 'ada', samples)).toEqual([]);
    expect(faultsOf(seen, 'bob', samples)).toEqual([]);
  });

  it('remains in effect while another Block applies: unblocking the stream does not unblock its package', async () => {
    const { observer } = world;
    await observer.apply(
      block(PRODUCER, 'by-stream', { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } }),
    );
    await observer.apply(
      block(PRODUCER, 'by-package', { integration: 'ada', target: { kind: 'Package', name: 'everything' } }),
    );
    await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']);
    await observer.remove('Block', 'by-stream', PRODUCER);
    await delay(1_000);
    await send('covered.0', ALWAYS);
    await awaitMarker('past-covered.0');
    expect(await observer.conditionOf('Subscription', SUBSCRIPTION, 'ada', 'Live')).toBe('False/Blocked');
    expect(world.receiver.delivered('ada').has('covered.0')).toBe(false);
    // Removing the stream from the package resumes it as well.
    await observer.apply(pkg(PRODUCER, 'everything', []));
    await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
    await world.receiver.arrival('covered.0', 'ada');
    await observer.remove('Block', 'by-package', PRODUCER);
  });
});

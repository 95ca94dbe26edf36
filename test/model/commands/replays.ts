import * as fc from 'fast-check';
import { REPLAYABLE_STATES } from '../../../src/plane/replay-prices.ts';
import { TENANTS } from '../system.ts';
import { aDeath, aTenant, commandOf } from './command.ts';

const aWish = fc.record({
  kind: fc.constantFrom('one', 'one', 'one', 'range', 'range', 'again', 'taken'),
  which: fc.nat(100),
  spanMs: fc.constantFrom(5_000, 30_000, 3_600_000),
  states: fc.oneof(fc.constant(REPLAYABLE_STATES), fc.subarray([...REPLAYABLE_STATES], { minLength: 1 })),
});

const word = { one: 'replays', range: 'replays', again: 'replays once more', taken: 'uses an id again for' } as const;

export const replay = commandOf(fc.tuple(aTenant, aWish, aDeath), ([first, wish, death]) => ({
  text: `a partner ${word[wish.kind]}`,
  run: system => system.partner.replay([first, ...TENANTS.filter(name => name !== first)], wish, death),
}));

/** Waits until the processes that started them may have crashed. */
export const sweep = commandOf(aDeath, death => ({
  text: 'replays that were left are swept',
  run: system => {
    system.clock.ms += 30_000;
    return system.partner.sweep(death);
  },
}));

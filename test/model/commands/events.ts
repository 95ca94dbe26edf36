import * as fc from 'fast-check';
import type { Job } from '../processes/dispatcher.ts';
import { aDeath, aGroupKey, aStream, aTenant, commandOf } from './command.ts';

const aKeyOrNone = fc.oneof({ weight: 8, arbitrary: aGroupKey }, { weight: 1, arbitrary: fc.constant('') });
const again = fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) });

/** Sizes around the number of bytes that one token pays for. */
const someBytes = fc.constantFrom(0, 0, 0, 0, 0, 0, 16_384, 16_385);

export const publish = commandOf(
  fc.record({ tenant: aTenant, stream: aStream, groupKey: aKeyOrNone, again, bytes: someBytes, death: aDeath }),
  ({ tenant, stream, groupKey, again: repeated, bytes, death }) => ({
    text: `${tenant} publishes ${repeated ? 'the last event again' : `with key ${groupKey || 'none'}`} to ${stream}`,
    run: system => system.publish(tenant, stream, groupKey, repeated, bytes, death),
  }),
);

const aDispatcher = fc.constantFrom(0, 0, 1);
const aJob = fc.constantFrom<Job[]>(
  'exchange',
  'exchange',
  'exchange',
  'advance',
  'advance',
  'tokens',
  'sweep',
  'evict',
);

/**
 * Between any two of these calls, other operations can happen: an exchange, or an operation that has no waiting caller.
 */
export const work = commandOf(
  fc.record({ which: aDispatcher, job: aJob, most: fc.integer({ min: 0, max: 5 }), death: aDeath }),
  ({ which, job, most, death }) => ({
    text: `dispatcher ${which}: ${job}${job === 'exchange' ? `, up to ${most}` : ''}`,
    run: system => system.work(which, job, most, death),
  }),
);

/** Queries an event's disposition. */
export const ask = commandOf(fc.nat(100), which => ({
  text: 'somebody reads the inbox of',
  run: async system => system.say(await system.reader.ask(which)),
}));

const anOutcome = fc.constantFrom(
  'delivered',
  'delivered',
  'delivered',
  'failed',
  'failed',
  'dead',
  'released',
  'gone',
);

export const endAttempt = commandOf(fc.record({ which: fc.nat(20), outcome: anOutcome }), ({ which, outcome }) => ({
  text: `${outcome}:`,
  can: system => system.flights().length > 0,
  run: system => system.end(which, outcome),
}));

/** Publishes, routes, and delivers events without faults, as far as the current state allows. */
export const serve = commandOf(
  fc.record({ tenant: aTenant, stream: aStream, groupKeys: fc.array(aGroupKey, { minLength: 1, maxLength: 3 }) }),
  ({ tenant, stream, groupKeys }) => ({
    text: `${tenant} publishes ${groupKeys.join(' and ')} to ${stream}, and all that is due is routed and delivered`,
    run: async system => {
      for (const groupKey of groupKeys) await system.publish(tenant, stream, groupKey, false, 0);
      await system.flow();
    },
  }),
);

export const dispatcherDies = commandOf(aDispatcher, which => ({
  text: `dispatcher ${which} dies`,
  can: system => system.flights().length > 0,
  run: async system => system.killDispatcher(which),
}));

/** Advances the clock beyond the retention, or beyond the time for duplicates and leases. */
export const wait = commandOf(fc.constantFrom(15, 61, 61), minutes => ({
  text: `${minutes} minutes pass`,
  run: async system => {
    system.clock.ms += minutes * 60_000;
  },
}));

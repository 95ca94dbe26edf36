import type { Defect } from './part/defects.ts';
import { SMALL_WORLDS } from './small-worlds.ts';
import type { Setup } from './world/world.ts';

const small = (name: string, change: Partial<Setup>): Setup => ({ ...(SMALL_WORLDS[name] as Setup), ...change });

const ONE = { dispatchers: ['x'], caps: { a: 3 }, events: { 1: 1, 2: 1, 3: 1 }, limit: 4 };

/** Small worlds for defects that random histories rarely detect. */
export const RARE: { readonly [D in Defect]?: Setup } = {
  "completion under another's claim": small('attempts fail', {}),
  'calls are not numbered': small('an answer is lost', {
    dispatchers: ['x'],
    faults: ['answer lost'],
    events: { 1: 1, 2: 1 },
    preemptions: 2,
  }),
  'late delivery leaves its lane retrying': small('attempts fail', { preemptions: 2, ticks: 3 }),
  'what has ended is put back': small('attempts fail', { failures: 0, events: { 1: 1 }, mostFaults: 2 }),
  'no fence': small('a push is lost', { ...ONE, preemptions: 2 }),
  'fence before the list': small('a push is lost', ONE),
  'list beside an exchange': small('a push is lost', {
    dispatchers: ['x'],
    faults: ['connection drops'],
    preemptions: 2,
  }),
  'pushes are not compared': small('a push is lost', ONE),
  'deaf connection is not noticed': small('a push is lost', ONE),
  'lost answer is not reconciled': small('an answer is lost', {}),
  'age from the reading': small('a dispatcher dies or stalls', {}),
  'refs are used again': small('a failover loses the tail', {}),
};

/** How each defect is detected: the violated rule, or the events that are not delivered in time. */
export const SYMPTOMS: { readonly [D in Defect]: RegExp } = {
  'id is not looked up': /stored 2 times/,
  'newcomers before those that wait': /the new .* passes/,
  "completion under another's claim": /attempts at once/,
  'calls are not numbered': /after \d+ ticks/,
  'room is counted, not said': /is taken to hold|after \d+ ticks/,
  'next of a lane before those that wait': /passes .* which waits for longer/,
  'cap in each dispatcher': /attempts at once/,
  'full slot does not come back': /its turn does not come/,
  'claims do not ask whether a key is off': /its gate is closed/,
  'late delivery leaves its lane retrying': /its head has not failed/,
  'what has ended is put back': /in 2 places/,
  'live in a later step': /passes .* does not get it|goes back/,
  'advance from a stale position': /routed twice|whose gate is closed|had passed it|goes back/,
  'charged again when a call goes on': /tokens are charged/,
  'deactivate does not mark a claimed lane': /its claim would go on/,
  'pause keeps no position': /its position moves|passes .* does not get it/,
  'pause in a hold at the tail': /its position moves/,
  'skip in a hold removes the position': /whose gate is closed|its position|goes back/,
  'since by the clock': /whose gate is closed|does not get it/,
  'evict asks no time': /which is sending it/,
  'evict counts no lapse': /ended \d+ dispatchers/,
  'no fence': /answers 2xx|attempts at once/,
  'fence before the list': /answers 2xx/,
  'list beside an exchange': /answers 2xx/,
  'pushes are not compared': /after \d+ ticks/,
  'lost answer is not reconciled': /after \d+ ticks/,
  'deaf connection is not noticed': /after \d+ ticks/,
  'age from the reading': /attempts at once|sent though|comes to/,
  'clock is read once': /after \d+ ticks/,
  'refs are used again': /never came/,
};

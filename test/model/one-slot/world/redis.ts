import { checkPart } from '../checks/part-rules.ts';
import { checkStep } from '../checks/step-rules.ts';
import { type Call, runStep, type StepName, type Stepped, type Steps } from '../part/step.ts';
import type { Setup, World } from './world.ts';

/** Runs a script, checks its changes, and delivers the published messages to all subscribers. */
export function run<K extends StepName>(
  world: World,
  setup: Setup,
  call: Steps[K][0] & { readonly step: K },
): Stepped<K>['reply'] {
  const before = world.part;
  const context = { now: world.now - world.skew, defect: setup.defect };
  const { part, reply, message } = runStep<K>(before, call, context);
  world.part = part;
  checkStep({ before, after: part, call: call as Call, reply, gates: world.gates, now: world.now });
  checkPart(part);
  if (message === undefined) return reply;
  for (const dispatcher of world.dispatchers) {
    if (dispatcher.state === 'dead' || !dispatcher.subscribed) continue;
    if (message.to !== dispatcher.name && !message.waiting) continue;
    // The last unread message already indicates that there is waiting work.
    const last = dispatcher.socket.at(-1);
    const repeats = last !== undefined && last !== 'fence' && last.waiting && message.to !== dispatcher.name;
    if (!repeats) dispatcher.socket = [...dispatcher.socket, message];
  }
  return reply;
}

import { pairsOf } from '../processes/controller.ts';
import { NAMES } from '../state/tenant.ts';
import { aDeath, aTenant, commandOf } from './command.ts';

/** Another controller becomes the leader, and completes unfinished work. */
export const takeOver = commandOf(aDeath, death => ({
  text: 'another controller leads',
  run: system => {
    system.takeOver();
    return system.lead(death);
  },
}));

export const resync = commandOf(aTenant, tenant => ({
  text: `everything of ${tenant} is applied once more`,
  can: system => system.isLed(),
  run: system =>
    system.resync(
      tenant,
      NAMES.integrations.flatMap(integration => pairsOf(system.objects, tenant, integration)),
    ),
}));

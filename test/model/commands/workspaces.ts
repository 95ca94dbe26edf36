import * as fc from 'fast-check';
import { aDeath, aTenant, commandOf } from './command.ts';

const values = fc.record({ tenant: aTenant, death: aDeath });

export const pause = commandOf(values, ({ tenant, death }) => ({
  text: `${tenant} is paused`,
  can: ({ objects }) =>
    objects.workspace(tenant)?.metadata.deletionTimestamp === undefined && !objects.isPaused(tenant),
  run: async system => {
    if (system.objects.workspace(tenant) === undefined) return system.say(': there is none');
    await system.pause(tenant, true, death);
  },
}));

export const resume = commandOf(values, ({ tenant, death }) => ({
  text: `the pause of ${tenant} ends`,
  can: ({ objects }) => objects.isPaused(tenant),
  run: system => system.pause(tenant, false, death),
}));

/** The workspace's namespace is kept, including all objects. */
export const deleteWorkspace = commandOf(values, ({ tenant, death }) => ({
  text: `workspace ${tenant} is deleted`,
  can: ({ objects }) => objects.workspace(tenant)?.metadata.deletionTimestamp === undefined,
  run: async system => {
    if (system.objects.workspace(tenant) === undefined) return system.say(': there is none');
    await system.deleteWorkspace(tenant, death);
  },
}));

export const makeWorkspace = commandOf(values, ({ tenant, death }) => ({
  text: `workspace ${tenant} is made again`,
  can: ({ objects }) => objects.workspace(tenant) === undefined,
  run: system => system.makeWorkspace(tenant, death),
}));

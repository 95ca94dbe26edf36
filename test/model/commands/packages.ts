import * as fc from 'fast-check';
import { NAMES } from '../state/tenant.ts';
import { aDeath, aPackage, aTenant, commandOf } from './command.ts';

const values = fc.record({ tenant: aTenant, name: aPackage, death: aDeath });
const someStreams = fc.subarray([...NAMES.streams]);

/** Creates a package or changes its streams. Streams can only be removed from an archived package. */
export const applyPackage = commandOf(fc.tuple(values, someStreams), ([{ tenant, name, death }, streams]) => ({
  text: `${tenant} groups ${streams.join(' and ') || 'nothing'} in package ${name}`,
  can: ({ objects }) => objects.get('Package', `${tenant}/${name}`)?.metadata.deletionTimestamp === undefined,
  run: async system => {
    const { spec } = system.objects.get('Package', `${tenant}/${name}`) ?? {};
    const kept = spec?.archived === true ? streams.filter(stream => spec.streams?.includes(stream)) : streams;
    system.objects.apply('Package', tenant, name, { ...spec, streams: kept });
    await system.change(tenant, death);
  },
}));

export const archivePackage = commandOf(values, ({ tenant, name, death }) => ({
  text: `${tenant} archives package ${name}`,
  can: ({ objects }) => objects.get('Package', `${tenant}/${name}`)?.metadata.deletionTimestamp === undefined,
  run: async system => {
    const stored = system.objects.get('Package', `${tenant}/${name}`);
    if (stored === undefined) return system.say(': there is none');
    system.objects.apply('Package', tenant, name, { ...stored.spec, archived: true });
    await system.change(tenant, death);
  },
}));

/** Deletes a package. It exists until no Block refers to it anymore, and blocks its streams until then. */
export const deletePackage = commandOf(values, ({ tenant, name, death }) => ({
  text: `${tenant} deletes package ${name}`,
  can: ({ objects }) => objects.get('Package', `${tenant}/${name}`)?.metadata.deletionTimestamp === undefined,
  run: async system => {
    if (system.objects.get('Package', `${tenant}/${name}`) === undefined) return system.say(': there is none');
    system.objects.markDeleting('Package', `${tenant}/${name}`);
    await system.change(tenant, death);
  },
}));

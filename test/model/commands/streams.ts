import * as fc from 'fast-check';
import { aDeath, aStream, aTenant, commandOf } from './command.ts';

const values = fc.record({ tenant: aTenant, stream: aStream, death: aDeath });

/** Applies a stream, which creates, publishes, or deprecates it. */
export const applyStream = commandOf(fc.tuple(values, fc.boolean()), ([{ tenant, stream, death }, isPublic]) => ({
  text: `${tenant} applies stream ${stream}${isPublic ? '' : ', deprecated'}`,
  can: ({ objects }) => objects.get('CatalogStream', `${tenant}/${stream}`)?.metadata.deletionTimestamp === undefined,
  run: async system => {
    const had = system.objects.get('CatalogStream', `${tenant}/${stream}`);
    const policy = had?.spec.deletionPolicy ?? 'Retain';
    system.objects.apply('CatalogStream', tenant, stream, {
      public: isPublic,
      retention: '1h',
      deletionPolicy: policy,
    });
    await system.change(tenant, death);
  },
}));

export const deleteStream = commandOf(fc.tuple(values, fc.boolean()), ([{ tenant, stream, death }, atOnce]) => ({
  text: `${tenant} deletes stream ${stream}${atOnce ? ' at once' : ''}`,
  can: ({ objects }) => objects.get('CatalogStream', `${tenant}/${stream}`)?.metadata.deletionTimestamp === undefined,
  run: async system => {
    const stored = system.objects.get('CatalogStream', `${tenant}/${stream}`);
    if (stored === undefined) return system.say(': there is none');
    if (atOnce) {
      system.objects.apply('CatalogStream', tenant, stream, { ...stored.spec, deletionPolicy: 'Delete' });
      system.tenantOf(tenant).mayLose(stored.metadata.uid);
    }
    system.objects.markDeleting('CatalogStream', `${tenant}/${stream}`);
    await system.change(tenant, death);
  },
}));

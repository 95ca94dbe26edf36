import * as fc from 'fast-check';
import { integrationId } from '../state/definition.ts';
import { untoldTokens } from '../state/untold.ts';
import { partTag } from '../state/world-dump.ts';
import { anIntegration, aStream, aTenant, commandOf } from './command.ts';

/** In a Cluster, a single slot may be restored without its data. In this case, only the data of this slot is lost. */
const values = fc.record({ tenant: aTenant, stream: aStream, integration: anIntegration });

export const loseTenant = commandOf(values, ({ tenant }) => ({
  text: `Redis loses the routes of ${tenant}`,
  run: system => system.loseSlot(tenant, `{t:${system.tenantOf(tenant).id}}`, () => {}),
}));

export const loseStream = commandOf(values, ({ tenant, stream }) => ({
  text: `Redis loses everything of ${tenant}'s ${stream}`,
  can: ({ objects }) => objects.get('CatalogStream', `${tenant}/${stream}`) !== undefined,
  run: system => {
    const { id } = system.tenantOf(tenant);
    return system.loseSlot(tenant, partTag(id, stream), (each, dump) => {
      const part = dump.parts.get(`${id}:${stream}`);
      each.loseStream(stream, part === undefined ? 0 : untoldTokens(part, dump));
    });
  },
}));

export const loseIntegration = commandOf(values, ({ tenant, integration }) => ({
  text: `Redis loses what it knows of ${tenant}'s ${integration}`,
  can: ({ objects }) => objects.get('Integration', `${tenant}/${integration}`) !== undefined,
  run: system => system.loseSlot(tenant, `{i:${integrationId(tenant, integration)}}`, () => {}),
}));

import * as fc from 'fast-check';
import { integrationId } from '../state/definition.ts';
import { anIntegration, aStream, aTenant, commandOf } from './command.ts';

/** Of a Cluster, one slot may come back empty; everything in it is lost then, and nothing else. */
const values = fc.record({ tenant: aTenant, stream: aStream, integration: anIntegration });

export const loseTenant = commandOf(values, ({ tenant }) => ({
  text: `Redis loses the routes of ${tenant}`,
  run: system => system.loseSlot(tenant, `{t:${system.tenantOf(tenant).id}}`, () => {}),
}));

export const loseQueue = commandOf(values, ({ tenant, stream }) => ({
  text: `Redis loses ${tenant}'s queue ${stream}`,
  can: ({ objects }) => objects.get('CatalogStream', `${tenant}/${stream}`) !== undefined,
  run: system => system.loseSlot(tenant, `{q:${system.tenantOf(tenant).id}:${stream}}`, each => each.loseQueue(stream)),
}));

export const loseIntegration = commandOf(values, ({ tenant, integration }) => ({
  text: `Redis loses what ${integration} has of ${tenant}`,
  can: ({ objects }) => objects.get('Integration', `${tenant}/${integration}`) !== undefined,
  run: system =>
    system.loseSlot(tenant, `{i:${integrationId(tenant, integration)}}`, each => each.loseIntegration(integration)),
}));

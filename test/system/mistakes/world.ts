import type { Sluice } from '../../support/sluice.ts';
import { makeSpecimens, type Specimens } from '../rest/contract/specimens.ts';
import { type FacadeWorld, openFacadeWorld } from '../rest/support/facade-world.ts';
import { createRestClient, type RestClient } from '../support/rest-client.ts';
import { kubectl } from '../support/world.ts';

/** A producer and a partner with one object of each kind, and an owner of both who makes mistakes. */
export interface MistakesWorld {
  readonly world: FacadeWorld;
  readonly sluice: Sluice;
  readonly specimens: Specimens;
  readonly ada: RestClient;
  readonly token: string;
  /** The ingress key of the producer. */
  readonly key: string;
  /** Returns the specs of all our objects, and the existing Secrets. Mistakes must not change them. */
  readonly state: () => Promise<string>;
}

export async function openMistakesWorld(): Promise<MistakesWorld> {
  const world = await openFacadeWorld();
  const sluice = await world.start();
  const specimens = await makeSpecimens(world, sluice, 'mine');
  const token = await world.issuer.token({ sub: 'ada', groups: ['mine'] });
  const { cluster } = world.installation;
  const path = '{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} {.spec}{"\\n"}{end}';
  const state = async () =>
    (await kubectl(cluster, ['get', 'waas,waas-admin,secrets', '-A', `-o=jsonpath=${path}`]))
      .split('\n')
      .toSorted()
      .join('\n');
  const ada = createRestClient(sluice.facadeUrl, token);
  return { world, sluice, specimens, ada, token, key: 'the-ingress-key-of-mine', state };
}

import type { AnyObject } from '../../../src/kube/object.ts';
import { SECRETS } from '../../../src/kube/resource.ts';
import type { Cluster } from '../../support/kubernetes/cluster.ts';
import type { Sluice } from '../../support/sluice.ts';
import { makeSpecimens, type Specimens } from '../rest/contract/specimens.ts';
import { type FacadeWorld, openFacadeWorld } from '../rest/support/facade-world.ts';
import { OURS } from '../support/listed.ts';
import { createRestClient, type RestClient } from '../support/rest-client.ts';
import { clientOf } from '../support/shared-client.ts';

/** A producer and a partner with one object of each kind, and an owner of both who makes mistakes. */
export interface MistakesWorld {
  readonly world: FacadeWorld;
  readonly sluice: Sluice;
  readonly specimens: Specimens;
  readonly ada: RestClient;
  readonly token: string;
  /** The producer's ingress key. */
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
  const state = () => readState(cluster);
  const ada = createRestClient(sluice.facadeUrl, token);
  return { world, sluice, specimens, ada, token, key: 'the-ingress-key-of-mine', state };
}

async function readState(cluster: Cluster): Promise<string> {
  const client = clientOf(cluster);
  const lists = [...OURS, SECRETS].map(async resource => {
    const describe = ({ metadata, spec }: AnyObject & { readonly spec?: object }) =>
      `${resource.kind} ${metadata.namespace}/${metadata.name} ${JSON.stringify(spec)}`;
    return (await client.list(resource, describe)).items;
  });
  return (await Promise.all(lists)).flat().toSorted().join('\n');
}

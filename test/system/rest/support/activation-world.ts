import { expect } from 'vitest';
import { activationId, publicId } from '../../../../src/core/ids/ids.ts';
import { activationObjectName } from '../../../../src/core/ids/object-names.ts';
import { makeSample } from '../../support/publisher.ts';
import type { Problem, Reply, RestClient } from '../../support/rest-client.ts';
import { PRODUCER, type Running, settle } from '../../support/small-world.ts';
import { activation, kubectl, type Manifest } from '../../support/world.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './facade-world.ts';

/** A group key that is always open for all partners. */
export const ALWAYS = 'always';

/** The fields of an activation that the tests read. */
export interface ReadActivation {
  readonly publicId: string;
  readonly status: string;
  readonly effective: boolean;
  readonly reason: string;
  readonly objects: readonly string[];
}

export const integrationId = (partner: string) => publicId('Integration', PRODUCER, partner);

/** Returns the name of the Activation that REST creates for a pair. */
export const ownName = (groupKey: string, partner = 'ada') => activationObjectName(PRODUCER, partner, groupKey);

/** Returns an Activation of ada which Git stores under a different name. */
export function fromGit(name: string, groupKey: string, spec: object = {}): Manifest {
  const manifest = activation(PRODUCER, 'ada', groupKey, spec);
  return { ...manifest, metadata: { ...manifest.metadata, name } };
}

/** A small world with a facade. The producer's owner opens and closes gates, and events show which gates are open. */
export interface ActivationWorld {
  readonly facade: FacadeWorld;
  readonly small: Running;
  readonly owner: RestClient;
  /** The owner of another workspace. */
  readonly eve: RestClient;
  readonly shop: string;
  readonly other: string;
  /** Returns the fields of a call. */
  readonly wantedOf: (
    groupKey: string,
    partner?: string,
  ) => { producerTenantPublicId: string; groupKey: string; integrationPublicId: string };
  readonly open: (groupKey: string, partner?: string) => Promise<Reply<ReadActivation & Problem['body']>>;
  readonly close: (groupKey: string, partner?: string) => Promise<Reply<Problem['body'] | undefined>>;
  readonly read: (groupKey: string, partner?: string) => Promise<ReadActivation>;
  /** Returns a field of an Activation by its JSONPath. */
  readonly field: (name: string, path: string) => Promise<string>;
  /** Applies the object using a different field manager, like Argo CD. */
  readonly applyAs: (manager: string, manifest: Manifest) => Promise<string>;
  /** Publishes an event. Returns its id. */
  readonly send: (id: string, groupKey: string) => Promise<string>;
  readonly arrived: (id: string, partner?: string) => Promise<unknown>;
  /**
   * Sends an event with a different key and waits until bob has received it. All events accepted before have been
   * claimed as well.
   */
  readonly awaitMarker: () => Promise<void>;
  readonly attempted: (id: string, partner?: string) => boolean;
  /** Sends an event with the key. Returns whether it was delivered to ada. */
  readonly passes: (groupKey: string) => Promise<boolean>;
  readonly stop: () => Promise<void>;
}

export async function openActivationWorld(): Promise<ActivationWorld> {
  const facade = await openFacadeWorld();
  const { cluster } = facade.installation;
  const sluice = await facade.start();
  const small = await settle(facade.installation, { partners: ['ada', 'bob'], groupKeys: [ALWAYS] });
  const publisher = small.publisherOf(sluice);
  const tenants = await makeTenants(facade, { [PRODUCER]: 'owner', other: 'eve' });
  const shop = tenants[PRODUCER] as string;
  const [owner, eve] = await Promise.all([facade.as(sluice, 'owner'), facade.as(sluice, 'eve')]);
  let count = 0;

  const wantedOf = (groupKey: string, partner = 'ada') => ({
    producerTenantPublicId: shop,
    groupKey,
    integrationPublicId: integrationId(partner),
  });

  async function send(id: string, groupKey: string): Promise<string> {
    expect((await publisher.post(makeSample(id, groupKey, id))).status).toBe(202);
    return id;
  }

  const arrived = (id: string, partner = 'ada') => small.receiver.arrival(id, partner);

  const attempted = (id: string, partner = 'ada') =>
    small.receiver.attempts.some(({ subscription: at, id: attempt }) => at === partner && attempt === id);

  async function awaitMarker(): Promise<void> {
    await arrived(await send(`past.${++count}`, ALWAYS), 'bob');
  }

  return {
    facade,
    small,
    owner,
    eve,
    shop,
    other: tenants['other'] as string,
    wantedOf,
    open: (groupKey, partner) => owner.post('/waas/activations', wantedOf(groupKey, partner)),
    close: (groupKey, partner) => owner.remove('/waas/activations', wantedOf(groupKey, partner)),
    read: async (groupKey, partner = 'ada') => {
      const id = activationId(PRODUCER, partner, groupKey);
      return (await owner.get<ReadActivation>(`/waas/producer/${shop}/activations/${id}`)).body;
    },
    field: (name, path) => kubectl(cluster, ['get', `activation/${name}`, '-n', PRODUCER, '-o', `jsonpath=${path}`]),
    applyAs: (manager, manifest) =>
      kubectl(cluster, ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'], JSON.stringify(manifest)),
    send,
    arrived,
    awaitMarker,
    attempted,
    passes: async groupKey => {
      const id = await send(`passes.${++count}`, groupKey);
      // Events routed before this event with a different key have been attempted before it because ada has enough
      // capacity for both.
      await arrived(await send(`passed.${count}`, ALWAYS));
      await awaitMarker();
      return attempted(id);
    },
    stop: async () => {
      await small.close();
      await facade.stop();
    },
  };
}

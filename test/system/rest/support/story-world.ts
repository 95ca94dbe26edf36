import { expect } from 'vitest';
import { startMailServer } from '../../../support/mail/mail-server.ts';
import type { Sluice } from '../../../support/sluice.ts';
import { type Observer, observe } from '../../support/observer.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import type { RestClient } from '../../support/rest-client.ts';
import { read } from '../../support/world.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './facade-world.ts';
import { readToken } from './invitation-world.ts';

/** The fields of an object that the story reads. */
export interface Seen {
  readonly metadata: { readonly generation: number; readonly resourceVersion: string };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly publicId?: string;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason: string;
      readonly observedGeneration: number;
    }[];
  };
}

/** An installation with an empty workspace `shop`, which `owner` owns, a mail server, and the endpoints of partners. */
export interface StoryWorld {
  readonly facade: FacadeWorld;
  readonly sluice: Sluice;
  /** The `ten_…` id of the producer. */
  readonly shop: string;
  readonly owner: RestClient;
  readonly as: (sub: string) => Promise<RestClient>;
  readonly receiver: Receiver;
  readonly observer: Observer;
  /** Returns the token sent to an email address. */
  readonly readToken: (email: string) => Promise<string>;
  /** Reads an object of the cluster. `kind` is a name that kubectl accepts. Undefined if it does not exist. */
  readonly look: (kind: string, name: string, namespace?: string) => Promise<Seen | undefined>;
  /** Reads the object. Expects the id returned by REST, the spec, and a condition based on this spec. */
  readonly expectSeen: (
    object: readonly [kind: string, name: string, namespace?: string],
    is: {
      readonly publicId: string;
      readonly spec: object;
      readonly Ready?: string;
      readonly [condition: string]: unknown;
    },
  ) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export async function openStoryWorld(): Promise<StoryWorld> {
  const [facade, mail, receiver] = await Promise.all([openFacadeWorld(), startMailServer(), startReceiver()]);
  const { cluster } = facade.installation;
  const sluice = await facade.startRoles({
    env: { SLUICE_SMTP_URL: `smtp://127.0.0.1:${mail.port}`, SLUICE_SMTP_FROM: 'sluice@example.org' },
  });
  const observer = observe(cluster.kubeconfig);
  const { shop = '' } = await makeTenants(facade, { shop: 'owner' });
  const look: StoryWorld['look'] = (kind, name, namespace) => read<Seen>(cluster, kind, name, namespace);
  return {
    facade,
    sluice,
    shop,
    owner: await facade.as(sluice, 'owner'),
    as: sub => facade.as(sluice, sub),
    receiver,
    observer,
    readToken: email => readToken(mail, email),
    look,
    expectSeen: async (object, { publicId, spec, ...conditions }) => {
      const seen = await look(...object);
      expect(seen?.status?.publicId, object.join(' ')).toBe(publicId);
      expect(seen?.spec, object.join(' ')).toEqual(spec);
      for (const [type, is] of Object.entries({ Ready: expect.stringMatching(/^True\//), ...conditions })) {
        const found = seen?.status?.conditions?.find(condition => condition.type === type);
        expect(`${found?.status}/${found?.reason}`, `${object.join(' ')} ${type}`).toEqual(is);
        expect(found?.observedGeneration, `${object.join(' ')} ${type}`).toBe(seen?.metadata.generation);
      }
    },
    stop: async () => {
      await observer.close();
      await receiver.close();
      await facade.stop();
      await mail.close();
    },
  };
}

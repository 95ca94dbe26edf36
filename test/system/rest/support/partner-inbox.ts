import type { z } from 'zod';
import { publicId } from '../../../../src/core/ids/ids.ts';
import type { EventDetail, EventEntry } from '../../../../src/facade/resources/inbox/event-views.ts';
import { eventually } from '../../support/deadline.ts';
import { createPublisher, type Publisher } from '../../support/publisher.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import type { Reply, RestClient } from '../../support/rest-client.ts';
import { activation, apply, ingressKey, integration, stream, tenant, waitForAll } from '../../support/world.ts';
import { expectDeclared } from './declared-answer.ts';
import { type FacadeWorld, openFacadeWorld, ownedTenant } from './facade-world.ts';

export type Entry = z.output<typeof EventEntry>;
export type Detail = z.output<typeof EventDetail>;

/** A page of the list of events. */
export interface Page {
  readonly data: readonly Entry[];
  readonly nextCursor: string | null;
  readonly resumeCursor: string | null;
}

const INGRESS_KEY = 'an-ingress-key-of-the-shop';
const OWN = publicId('Account', '', 'ada');

/**
 * The producer `shop` with the streams `orders` and `visits`, its partners `ada` and `eve`, and two subscriptions of
 * ada: to orders with an endpoint, and to visits without an endpoint. The group keys red, green and blue are active for
 * ada.
 */
export interface PartnerInbox {
  readonly world: FacadeWorld;
  readonly receiver: Receiver;
  /** Publishes orders. */
  readonly publisher: Publisher;
  readonly ada: RestClient;
  readonly eve: RestClient;
  /** The `sub_…` ids of the subscription with an endpoint, and of the subscription without an endpoint. */
  readonly pushed: string;
  readonly pulled: string;
  /** The path of ada's integration. */
  readonly root: string;
  readonly eventPath: (id: string) => string;
  readonly list: (query: string, subscription?: string) => Promise<Reply<Page>>;
  readonly read: (id: string) => Promise<Detail>;
  /** Waits until the event to which the producer gave this id has this state. Returns the event. */
  readonly eventIn: (eventId: string, state: string) => Promise<Entry>;
  /** Returns the tokens used by ada's account. */
  readonly used: () => Promise<number>;
  readonly stop: () => Promise<void>;
}

/** @param includedTokens of ada's account, which uses the plan Free */
export async function openPartnerInbox(includedTokens: number): Promise<PartnerInbox> {
  const world = await openFacadeWorld();
  const sluice = await world.startRoles();
  const receiver = await startReceiver();
  const { cluster } = world.installation;
  await apply(cluster, [
    ...tenant('shop'),
    ...ownedTenant(world.issuer, 'ada', 'ada', { plan: 'Free', includedTokens }),
    ...ownedTenant(world.issuer, 'eve', 'eve'),
    stream('shop', 'orders'),
    stream('shop', 'visits'),
    ingressKey('shop', INGRESS_KEY),
    integration('shop', 'ada'),
    integration('shop', 'eve'),
    ...['red', 'green', 'blue'].map(groupKey => activation('shop', 'ada', groupKey)),
  ]);
  await waitForAll(cluster, 'catalogstream', 'shop');
  await waitForAll(cluster, 'integration', 'shop');
  await waitForAll(cluster, 'activation', 'shop', 'Effective');
  const [ada, eve] = await Promise.all([world.as(sluice, 'ada'), world.as(sluice, 'eve')]);
  const root = `/waas/integrations/${publicId('Integration', 'shop', 'ada')}`;

  async function subscribe(name: string, wish: object): Promise<string> {
    const body = { catalogEntryPublicId: publicId('CatalogStream', 'shop', name), ...wish };
    const reply = await ada.post<{ publicId: string }>(`${root}/subscriptions`, body);
    if (reply.status !== 201) throw new Error(`subscribe: ${reply.status} ${JSON.stringify(reply.body)}`);
    return reply.body.publicId;
  }
  const pushed = await subscribe('orders', {
    endpoint: { url: receiver.urlOf('ada'), retrySchedule: ['100ms', '1h'] },
  });
  const pulled = await subscribe('visits', {});
  const publisher = createPublisher({
    ingressUrl: sluice.ingressUrl,
    producer: 'shop',
    queue: 'orders',
    key: INGRESS_KEY,
  });
  const list: PartnerInbox['list'] = (query, subscription = pushed) =>
    ada.get<Page>(`${root}/events?subscription=${subscription}&${query}`);
  const eventPath = (id: string) => `${root}/events/${id}`;
  return {
    world,
    receiver,
    publisher,
    ada,
    eve,
    pushed,
    pulled,
    root,
    eventPath,
    list,
    read: async id => expectDeclared('getEvent', await ada.get<Detail>(eventPath(id))).body,
    eventIn: async (eventId, state) => {
      const find = async () =>
        (await list(`state=${state}&limit=250`)).body.data.find(each => each.eventId === eventId);
      return (await eventually(`${eventId} is ${state}`, find)).value;
    },
    used: async () => (await ada.get<{ usedTokens: number }>(`/waas/accounts/${OWN}/tokens`)).body.usedTokens,
    stop: async () => {
      await publisher.close();
      await receiver.close();
      await world.stop();
    },
  };
}

/** Returns the time this number of milliseconds ago (RFC 3339). */
export function ago(ms: number): string {
  return new Date(Date.now() - ms).toISOString();
}

import { expect, test } from 'vitest';
import { SIGNING_SECRET_TYPE } from '../../../src/api/well-known.ts';
import { tenantId } from '../../../src/core/ids/ids.ts';
import { queueKeys } from '../../../src/redis/keys.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { block, kubectl, type Manifest, stream, subscription, tenant } from '../support/world.ts';

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });

const BLOCK = block(PRODUCER, 'blocked', { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } });

/** Returns the manifests of the objects that have a finalizer, as in the Git repository of a user. */
function manifests(): Record<string, Manifest> {
  const [, , workspace] = tenant(PRODUCER);
  return {
    Workspace: workspace as Manifest,
    CatalogStream: stream(PRODUCER, QUEUE),
    Subscription: subscription('ada', PRODUCER, QUEUE, { url: world.receiver.urlOf('ada'), retrySchedule: ['200ms'] }),
  };
}

/**
 * Replaces an object as kubectl does, which reads its version first. If the controller writes to the object between
 * both requests, kubectl reports a conflict, and users repeat the command.
 */
async function replace(manifest: object): Promise<void> {
  for (;;) {
    try {
      await kubectl(world.cluster, ['replace', '-f', '-'], JSON.stringify(manifest));
      return;
    } catch (error) {
      if (!String(error).includes('(Conflict)')) throw error;
    }
  }
}

// The manifest does not contain the finalizer, so `kubectl replace` removes it. Argo CD does the same with
// Replace=true.
test.each(['Workspace', 'CatalogStream', 'Subscription'])(
  'replacing the %s keeps its waiting events, and routes all new ones',
  async kind => {
    const { observer, publisher, receiver } = world;
    const manifest = manifests()[kind] as Manifest;
    await observer.apply(BLOCK);
    await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'False/Blocked']);
    const statuses = new Map<string, number>();
    const send = async (): Promise<string> => {
      const id = `${kind}.${statuses.size}`;
      statuses.set(id, (await publisher.post(makeSample(id, 'key', id))).status);
      return id;
    };
    for (let n = 0; n < 5; n++) await send();
    const replacing = { isOver: false };
    const publish = async () => {
      while (!replacing.isOver) await send();
    };
    const publishing = publish();
    try {
      for (let n = 0; n < 3; n++) await replace(manifest);
    } finally {
      replacing.isOver = true;
      await publishing;
    }
    await observer.remove('Block', 'blocked', PRODUCER);
    await observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', 'True/Live']);
    await receiver.arrival(await send(), 'ada');
    expect([...statuses].filter(([, status]) => status !== 202)).toEqual([]);
    expect([...statuses.keys()].filter(id => !receiver.delivered('ada').has(id))).toEqual([]);
  },
);

test.each([
  ['another value', 'x'],
  ['the same value', undefined],
])('a signing Secret that was replaced with %s gets its value and its owner again', async (_what, value) => {
  const { cluster } = world;
  const name = `${SUBSCRIPTION}-signing`;
  const path = '{.data.secret} {.metadata.ownerReferences[*].name}';
  const read = () => kubectl(cluster, ['get', 'secret', name, '-n', 'ada', '-o', `jsonpath=${path}`]);
  const before = await read();
  const [secret, owner] = before.split(' ');
  expect(owner).toBe(SUBSCRIPTION);
  const data = value === undefined ? { data: { secret } } : { stringData: { secret: value } };
  const metadata = { name, namespace: 'ada' };
  const manifest = { apiVersion: 'v1', kind: 'Secret', metadata, type: SIGNING_SECRET_TYPE, ...data };
  await replace(manifest);
  await eventually('the Secret is restored', async () => (await read()) === before, { withinMs: 20_000 });
});

test('a CatalogStream whose finalizer is removed by hand reports that its undelivered events are not delivered', async () => {
  const { cluster, observer, publisher, receiver, redis } = world;
  const { promise: after, resolve: answer } = Promise.withResolvers<void>();
  receiver.behave(() => ({ status: 503, after }));
  expect((await publisher.publish(makeSample('in-inbox', 'key', 'in-inbox'))).status).toBe(202);
  await eventually('there was an attempt', async () => receiver.attempts.some(({ id }) => id === 'in-inbox'));
  const where = [`catalogstream/${QUEUE}`, '-n', PRODUCER];
  await kubectl(cluster, ['delete', ...where, '--wait=false']);
  await observer.until(['CatalogStream', QUEUE, PRODUCER, 'Ready', 'False/Draining']);
  await kubectl(cluster, ['patch', ...where, '--type=merge', '-p', '{"metadata":{"finalizers":null}}']);
  await observer.untilEvent(`CatalogStream/${QUEUE} FinalizerRemovedWhileDraining`);
  const state = async () =>
    (await redis.command('HGET', queueKeys(tenantId(PRODUCER), QUEUE).meta, 'state')) === 'closing';
  await eventually('the queue is closed', state);

  await observer.apply(stream(PRODUCER, QUEUE));
  await observer.untilEvent(`CatalogStream/${QUEUE} EventsRemoved`);
  const lines = (await world.sluice.logLines()).filter(({ msg }) =>
    String(msg).startsWith('Another CatalogStream with this name was deleted'),
  );
  expect(lines).toMatchObject([{ queue: QUEUE, unrouted: 0, open: 1 }]);
  answer();
});

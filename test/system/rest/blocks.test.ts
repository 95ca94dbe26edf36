import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { blockObjectName } from '../../../src/core/ids/object-names.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import { PRODUCER, QUEUE, type Running, SUBSCRIPTION, settle } from '../support/small-world.ts';
import { apply, block, integration, kubectl, pkg, stream } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

const KEY = 'key';

let world: FacadeWorld;
let small: Running;
let publisher: Publisher;
let owner: RestClient;
let eve: RestClient;
let shop: string;
let count = 0;

const cat = (name: string) => publicId('CatalogStream', PRODUCER, name);
const idOf = (name: string) => publicId('Package', PRODUCER, name);
const blocksOf = (partner: string) =>
  `/waas/producer/${shop}/integrations/${publicId('Integration', PRODUCER, partner)}/blocks`;
const pathOf = {
  stream: (partner = 'ada', name = QUEUE) => `${blocksOf(partner)}/streams/${cat(name)}`,
  package: (name: string, partner = 'ada') => `${blocksOf(partner)}/packages/${idOf(name)}`,
};
const ofStream = (partner = 'ada', name = QUEUE) => blockObjectName(PRODUCER, partner, 'CatalogStream', name);
const ofPackage = (name: string, partner = 'ada') => blockObjectName(PRODUCER, partner, 'Package', name);

beforeAll(async () => {
  world = await openFacadeWorld();
  const sluice = await world.start();
  small = await settle(world.installation, { partners: ['ada', 'bob'], groupKeys: [KEY] });
  publisher = small.publisherOf(sluice);
  const tenants = await makeTenants(world, { [PRODUCER]: 'owner', other: 'eve' });
  shop = tenants[PRODUCER] as string;
  [owner, eve] = await Promise.all([world.as(sluice, 'owner'), world.as(sluice, 'eve')]);
  await apply(world.installation.cluster, [stream(PRODUCER, 'carts')]);
  for (const name of ['Basics', 'Extras']) await succeed(owner.post(`/waas/producer/${shop}/packages`, { name }), 201);
  for (const name of ['basics', 'extras']) await succeed(addTo(name, QUEUE));
});

afterAll(async () => {
  await small?.close();
  await world?.stop();
});

async function succeed(call: Promise<Reply>, status = 204): Promise<void> {
  const reply = await call;
  expect(reply.status, JSON.stringify(reply.body)).toBe(status);
}

const addTo = (name: string, streamName: string) =>
  owner.post(`/waas/producer/${shop}/packages/${idOf(name)}/streams`, { catalogEntryPublicId: cat(streamName) });
const takeFrom = (name: string, streamName: string) =>
  owner.remove(`/waas/producer/${shop}/packages/${idOf(name)}/streams/${cat(streamName)}`);

/** Sends one event. Bob is not affected by any block and has received the event when this function returns. */
async function send(id: string): Promise<string> {
  expect((await publisher.post(makeSample(id, KEY, id))).status).toBe(202);
  await small.receiver.arrival(id, 'bob');
  return id;
}

const takenByAda = (prefix: string) =>
  small.receiver.attempts
    .filter(({ subscription: at, id }) => at === 'ada' && id.startsWith(prefix))
    .map(({ id }) => id);
/** The status of a subscription follows a block that is in force a moment later. */
const live = (is: string) => small.observer.until(['Subscription', SUBSCRIPTION, 'ada', 'Live', is]);
const field = (name: string, path: string) =>
  kubectl(world.installation.cluster, ['get', `block/${name}`, '-n', PRODUCER, '-o', `jsonpath={${path}}`]);
const exists = (name: string) => small.observer.exists('Block', name, PRODUCER);

/**
 * Waits until earlier unblocks are in force. Unblocking takes effect when the watch delivers it, and a later block is
 * compiled along with it.
 */
async function settleRoutes(): Promise<void> {
  await succeed(owner.post(pathOf.stream('bob', 'carts')));
  await succeed(owner.remove(pathOf.stream('bob', 'carts')));
}

describe('a block', () => {
  test('of a stream is in force when the call returns, can be repeated, and is visible with kubectl', async () => {
    const prefix = `stream${++count}`;
    expectDeclared('blockStream', await owner.post(pathOf.stream()));
    const during = await send(`${prefix}.during`);
    await live('False/Blocked');
    const name = ofStream();
    expect(await field(name, '.spec')).toBe(
      `{"integration":"ada","onUnblock":"Continue","target":{"kind":"CatalogStream","name":"${QUEUE}"}}`,
    );
    const version = await field(name, '.metadata.resourceVersion');
    for (let n = 0; n < 3; n++) await succeed(owner.post(pathOf.stream()));
    expect(await field(name, '.metadata.resourceVersion')).toBe(version);
    const listed = expectDeclared('listBlocks', await owner.get<{ data: unknown[] }>(blocksOf('ada')));
    expect(listed.body.data).toEqual([
      {
        publicId: await field(name, '.status.publicId'),
        target: 'stream',
        catalogEntryPublicId: cat(QUEUE),
        packagePublicId: null,
        key: QUEUE,
        enforced: true,
        pausedSubscriptions: 1,
        objects: [name],
      },
    ]);
    expect(takenByAda(prefix)).toEqual([]);
    for (let n = 0; n < 3; n++) expectDeclared('unblockStream', await owner.remove(pathOf.stream()));
    await small.receiver.arrival(during, 'ada');
    expect(await exists(name)).toBe(false);
    await live('True/Live');
  });

  test('is created once by fifty equal calls', async () => {
    for (const [path, name] of [
      [pathOf.stream(), ofStream()],
      [pathOf.package('basics'), ofPackage('basics')],
    ] as const) {
      const replies = await Promise.all(Array.from({ length: 50 }, () => owner.post(path)));
      expect(new Set(replies.map(({ status, body }) => `${status} ${JSON.stringify(body)}`))).toEqual(
        new Set(['204 undefined']),
      );
      expect(await field(name, '.metadata.generation')).toBe('1');
      const gone = await Promise.all(Array.from({ length: 50 }, () => owner.remove(path)));
      expect(new Set(gone.map(({ status }) => status))).toEqual(new Set([204]));
      expect(await exists(name)).toBe(false);
    }
    await live('True/Live');
  });

  test('of one package takes precedence over another package with the same stream', async () => {
    const prefix = `package${++count}`;
    expectDeclared('blockPackage', await owner.post(pathOf.package('basics')));
    const during = await send(`${prefix}.during`);
    await succeed(owner.remove(pathOf.package('extras')));
    await succeed(owner.remove(pathOf.stream()));
    await settleRoutes();
    await live('False/Blocked');
    expect(takenByAda(prefix)).toEqual([]);
    expectDeclared('unblockPackage', await owner.remove(pathOf.package('basics')));
    await small.receiver.arrival(during, 'ada');
  });

  test('of a package includes a stream from when the call that adds it returns until it is removed', async () => {
    const prefix = `member${++count}`;
    await succeed(takeFrom('basics', QUEUE));
    await succeed(owner.post(pathOf.package('basics')));
    const sent = [await send(`${prefix}.before`)];
    await small.receiver.arrival(sent[0] as string, 'ada');
    await succeed(addTo('basics', QUEUE));
    sent.push(await send(`${prefix}.during`));
    expect(takenByAda(prefix)).toEqual(sent.slice(0, 1));
    await succeed(takeFrom('basics', QUEUE));
    await small.receiver.arrival(sent[1] as string, 'ada');
    await succeed(addTo('basics', QUEUE));
    await succeed(owner.remove(pathOf.package('basics')));
    await live('True/Live');
  });
});

const BLOCKS = {
  stream: pathOf.stream,
  basics: () => pathOf.package('basics'),
  extras: () => pathOf.package('extras'),
};
type Name = keyof typeof BLOCKS;
const ORDERS: Name[][] = [
  ['stream', 'basics', 'extras'],
  ['stream', 'extras', 'basics'],
  ['basics', 'stream', 'extras'],
  ['basics', 'extras', 'stream'],
  ['extras', 'stream', 'basics'],
  ['extras', 'basics', 'stream'],
];

test.each(ORDERS.map(order => [order.join(', '), order] as const))(
  'unblocked in the order %s resumes the subscription after the last unblock, in order and without losing events',
  async (_said, order) => {
    const prefix = `order${++count}`;
    for (const name of order.toReversed()) await succeed(owner.post(BLOCKS[name]()));
    const sent = [await send(`${prefix}.all`)];
    for (const name of order.slice(0, 2)) {
      await succeed(owner.remove(BLOCKS[name]()));
      await settleRoutes();
      await live('False/Blocked');
      sent.push(await send(`${prefix}.without-${name}`));
    }
    expect(takenByAda(prefix)).toEqual([]);
    await succeed(owner.remove(BLOCKS[order[2] as Name]()));
    await live('True/Live');
    sent.push(await send(`${prefix}.none`));
    await small.receiver.arrival(sent.at(-1) as string, 'ada');
    expect(takenByAda(prefix)).toEqual(sent);
  },
);

test('from Git remains: nothing changes, and the response names its manager', async () => {
  const fromGit = block(PRODUCER, 'from-git', { integration: 'ada', target: { kind: 'CatalogStream', name: QUEUE } });
  const { cluster } = world.installation;
  await kubectl(cluster, ['apply', '--server-side', '--field-manager=argocd', '-f', '-'], JSON.stringify(fromGit));
  await succeed(owner.post(pathOf.stream()));
  const listed = await owner.get<{ data: { objects: string[] }[] }>(blocksOf('ada'));
  expect(listed.body.data.map(({ objects }) => objects)).toEqual([[ofStream(), 'from-git'].toSorted()]);
  for (let n = 0; n < 3; n++) {
    const refused: Problem = await owner.remove(pathOf.stream());
    expect([refused.status, refused.body.code]).toEqual([409, 'managed_elsewhere']);
    expect(refused.body.detail).toContain('from-git');
  }
  expect(await exists(ofStream())).toBe(true);
  await kubectl(cluster, ['delete', 'block/from-git', '-n', PRODUCER]);
  await eventually('the Block is not in the cache', async () => (await owner.remove(pathOf.stream())).status === 204);
  expect(await exists(ofStream())).toBe(false);
  await live('True/Live');
});

test('an archived package does not accept new blocks; existing blocks remain and can be removed', async () => {
  const { cluster } = world.installation;
  await succeed(owner.post(`/waas/producer/${shop}/packages`, { name: 'Old' }), 201);
  await succeed(addTo('old', QUEUE));
  await succeed(owner.post(pathOf.package('old')));
  await succeed(owner.post(`/waas/producer/${shop}/packages/${idOf('old')}/archive`));
  await succeed(owner.post(pathOf.package('old')));
  await live('False/Blocked');
  const refused: Problem = await owner.post(pathOf.package('old', 'bob'));
  expect([refused.status, refused.body.code]).toEqual([409, 'package_archived']);
  expect(await exists(ofPackage('old', 'bob'))).toBe(false);
  await succeed(owner.remove(pathOf.package('old')));
  await live('True/Live');
  expect((await owner.post<Problem['body']>(pathOf.package('old'))).body.code).toBe('package_archived');
  // A target that is blocked by another manager is already blocked as requested, so no second Block is created.
  await small.observer.apply(
    block(PRODUCER, 'by-hand', { integration: 'ada', target: { kind: 'Package', name: 'old' } }),
  );
  await small.observer.until(['Block', 'by-hand', PRODUCER, 'Enforced', 'True/Enforced']);
  await succeed(owner.post(pathOf.package('old')));
  expect(await exists(ofPackage('old'))).toBe(false);
  await kubectl(cluster, ['delete', 'block/by-hand', '-n', PRODUCER]);
  await live('True/Live');
});

test('pending and revoked integrations can be blocked, and deleted integrations can be unblocked', async () => {
  const { cluster } = world.installation;
  await apply(cluster, [
    integration(PRODUCER, 'pending', { workspace: undefined, invitedEmail: 'p@example.com' }),
    integration(PRODUCER, 'revoked', { workspace: 'bob', revoked: true }),
  ]);
  for (const partner of ['pending', 'revoked']) {
    await succeed(owner.post(pathOf.stream(partner)));
    await succeed(owner.post(pathOf.package('basics', partner)));
    await succeed(owner.remove(pathOf.package('basics', partner)));
  }
  await succeed(owner.remove(pathOf.stream('revoked')));
  await kubectl(cluster, ['delete', 'integration/pending', '-n', PRODUCER]);
  await eventually(
    'the integration is not in the cache',
    async () => (await owner.get(blocksOf('pending'))).status === 404,
  );
  expect(await exists(ofStream('pending'))).toBe(true);
  await succeed(owner.remove(pathOf.stream('pending')));
  expect(await exists(ofStream('pending'))).toBe(false);
  await succeed(owner.remove(pathOf.stream('pending')));
});

test('a package that is being deleted does not accept new blocks', async () => {
  const { cluster } = world.installation;
  await apply(cluster, [pkg(PRODUCER, 'leaving', ['carts'])]);
  // A package that the controller has not reconciled yet has no finalizer.
  await small.observer.until(['Package', 'leaving', PRODUCER, 'Ready', 'True/Compiled']);
  await succeed(owner.post(pathOf.package('leaving')));
  await kubectl(cluster, ['delete', 'package/leaving', '-n', PRODUCER, '--wait=false']);
  const refused: Problem = await owner.post(pathOf.package('leaving', 'bob'));
  expect([refused.status, refused.body.code]).toEqual([409, 'being_deleted']);
  await succeed(owner.post(pathOf.package('leaving')));
  await succeed(owner.remove(pathOf.package('leaving')));
  await small.observer.untilGone(['Package', 'leaving', PRODUCER]);
});

test('refuses unknown, malformed, and foreign ids', async () => {
  const none = '0'.repeat(20);
  const nobody = `/waas/producer/${shop}/integrations/int_${none}/blocks`;
  const cases: [expected: number, reply: Promise<Reply>][] = [
    [404, owner.post(`${nobody}/streams/${cat(QUEUE)}`)],
    [404, owner.post(`${blocksOf('ada')}/streams/cat_${none}`)],
    [404, owner.post(`${blocksOf('ada')}/packages/pkg_${none}`)],
    [404, owner.get(nobody)],
    [204, owner.remove(`${nobody}/streams/${cat(QUEUE)}`)],
    [204, owner.remove(`${blocksOf('ada')}/streams/cat_${none}`)],
    [204, owner.remove(`${blocksOf('ada')}/packages/pkg_${none}`)],
    [400, owner.remove(`${blocksOf('ada')}/streams/${QUEUE}`)],
    [400, owner.remove(`${blocksOf('ada')}/packages/${cat(QUEUE)}`)],
    [422, owner.post(pathOf.stream(), { reason: 'none' })],
    [403, eve.post(pathOf.stream())],
    [403, eve.remove(pathOf.stream())],
    [403, eve.get(blocksOf('ada'))],
  ];
  expect(await Promise.all(cases.map(async ([, reply]) => (await reply).status))).toEqual(
    cases.map(([status]) => status),
  );
  const [foreign, absent] = [
    await eve.post(pathOf.package('basics')),
    await eve.post(pathOf.package('basics').replace(shop, `ten_${none}`)),
  ];
  expect(foreign.body).toEqual(absent.body);
  expect(await exists(ofStream())).toBe(false);
});

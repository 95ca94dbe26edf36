import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import type { Sluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import type { Problem, Reply, RestClient } from '../support/rest-client.ts';
import { apply, block, integration, kubectl, type Manifest, pkg, stream, waitForAll } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

interface Created {
  readonly publicId: string;
  readonly key: string;
}

const MORE = Array.from({ length: 10 }, (_, n) => `more-${n}`);

let world: FacadeWorld;
let sluice: Sluice;
let ada: RestClient;
let eve: RestClient;
let shop: string;
let packages: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  ({ shop = '' } = await makeTenants(world, { shop: 'ada', other: 'eve' }));
  packages = `/waas/producer/${shop}/packages`;
  [ada, eve] = await Promise.all([world.as(sluice, 'ada'), world.as(sluice, 'eve')]);
  await apply(world.installation.cluster, [
    ...['orders', 'carts', 'refunds', ...MORE].map(name => stream('shop', name)),
    integration('shop', 'other'),
  ]);
  await waitForAll(world.installation.cluster, 'catalogstream', 'shop');
});
afterAll(() => world?.stop());

const cat = (name: string) => publicId('CatalogStream', 'shop', name);
const pathOf = (name: string) => `${packages}/${publicId('Package', 'shop', name)}`;
const json = (name: string, path: string) =>
  kubectl(world.installation.cluster, ['get', `package/${name}`, '-n', 'shop', '-o', `jsonpath=${path}`]);
const versionOf = (name: string) => json(name, '{.metadata.resourceVersion}');

async function create(name: string, more: object = {}): Promise<Created> {
  const reply = await ada.post<Created>(packages, { name, ...more });
  expect(reply.status, JSON.stringify(reply.body)).toBe(201);
  return reply.body;
}

/** Applies the object using a different field manager, like Argo CD. */
const applyAs = (manager: string, manifest: Manifest) =>
  kubectl(
    world.installation.cluster,
    ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'],
    JSON.stringify(manifest),
  );

test('a package is created once, even if the request is repeated', async () => {
  const wanted = { name: 'Grundlagen für alle', description: 'what everybody needs' };
  const first = await ada.post<Created>(packages, wanted);
  expect(first.status, JSON.stringify(first.body)).toBe(201);
  expect(first.body).toEqual({
    publicId: publicId('Package', 'shop', 'grundlagen-fur-alle'),
    key: 'grundlagen-fur-alle',
    name: 'Grundlagen für alle',
    status: 'Active',
  });
  expect(first.headers.get('location')).toBe(`${packages}/${first.body.publicId}`);
  expectDeclared('createPackage', first);
  const version = await versionOf('grundlagen-fur-alle');
  for (let n = 0; n < 3; n++) {
    const again = await ada.post(packages, wanted);
    expect([again.status, again.body]).toEqual([201, first.body]);
  }
  expect(await versionOf('grundlagen-fur-alle')).toBe(version);
  const read = await ada.get(`${packages}/${first.body.publicId}`);
  expect(read.body).toEqual({ ...first.body, description: 'what everybody needs', streamCount: 0, streams: [] });
  expectDeclared('getPackage', read);
});

test('fifty concurrent equal calls create one package and return equal responses', async () => {
  const replies = await Promise.all(Array.from({ length: 50 }, () => ada.post(packages, { name: 'At once' })));
  const answers = new Set(replies.map(({ status, body }) => JSON.stringify([status, body])));
  expect([...answers]).toEqual([expect.stringMatching(/^\[201,/)]);
  expect(await json('at-once', '{.metadata.generation}')).toBe('1');
});

test('only one of two concurrent calls with different names for the same key creates a package', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `${'!'.repeat(n)}Rival`);
  const replies = await Promise.all(names.map(name => ada.post<Partial<Created>>(packages, { name })));
  const made = replies.filter(({ status }) => status === 201);
  expect(made).toHaveLength(1);
  const conflicts = replies.filter(({ status }) => status === 409);
  expect(conflicts).toHaveLength(11);
  for (const { body } of conflicts) {
    expect(body).toMatchObject({
      code: 'package_key_conflict',
      detail: expect.stringContaining(made[0]?.body.publicId ?? '-'),
    });
  }
});

test('only one of two concurrent calls with different descriptions creates the package', async () => {
  const calls = Array.from({ length: 10 }, (_, n) => ({ name: 'Described at once', description: `as ${n}` }));
  const replies = await Promise.all(calls.map(call => ada.post<Problem['body']>(packages, call)));
  const made = replies.findIndex(({ status }) => status === 201);
  const reported = replies.toSpliced(made, 1).map(({ status, body }) => `${status} ${body.code}`);
  expect(new Set(reported)).toEqual(new Set(['409 package_key_conflict']));
  expect(await json('described-at-once', '{.spec.description}')).toBe(`as ${made}`);
});

test('a key always belongs to one name and one description', async () => {
  const { publicId: id } = await create('Extras', { description: 'more' });
  for (const wanted of [{ name: 'extras' }, { name: 'Extras' }, { name: 'Extras', description: 'less' }]) {
    const reply: Problem = await ada.post(packages, wanted);
    expect([reply.status, reply.body.code]).toEqual([409, 'package_key_conflict']);
    expect(reply.body.detail).toContain(id);
    expect(reply.body.detail).toContain('"Extras"');
  }
  const renamed = await ada.put(pathOf('extras'), { name: 'Premium' });
  expectDeclared('updatePackage', renamed);
  expect(renamed.body).toMatchObject({ publicId: id, key: 'extras', name: 'Premium', description: null });
  const version = await versionOf('extras');
  for (let n = 0; n < 3; n++) expect((await ada.put(pathOf('extras'), { name: 'Premium' })).body).toEqual(renamed.body);
  expect(await versionOf('extras')).toBe(version);
  expect(await json('extras', '{.spec}')).toBe('{"displayName":"Premium","name":"Extras"}');
  const taken: Problem = await ada.post(packages, { name: 'Extras' });
  expect([taken.status, taken.body.detail]).toEqual([409, expect.stringContaining('"Premium"')]);
  // The display name is not a key.
  expect((await create('Premium')).key).toBe('premium');
});

test('streams can be added and removed, and each call can be repeated', async () => {
  await create('Mixed');
  const path = `${pathOf('mixed')}/streams`;
  for (const name of ['orders', 'carts']) {
    expect((await ada.post(path, { catalogEntryPublicId: cat(name) })).status).toBe(204);
  }
  const version = await versionOf('mixed');
  for (let n = 0; n < 3; n++) {
    const again = await ada.post(path, { catalogEntryPublicId: cat('orders') });
    expect([again.status, again.body]).toEqual([204, undefined]);
  }
  expect(await versionOf('mixed')).toBe(version);
  const read = await ada.get(pathOf('mixed'));
  expect(read.body).toMatchObject({
    streamCount: 2,
    streams: [
      { catalogEntryPublicId: cat('carts'), key: 'carts' },
      { catalogEntryPublicId: cat('orders'), key: 'orders' },
    ],
  });
  expectDeclared('getPackage', read);
  expect(await json('mixed', '{.spec.streams} {.status.streamCount}')).toBe('["carts","orders"] 2');
  for (let n = 0; n < 3; n++) expect((await ada.remove(`${path}/${cat('orders')}`)).status).toBe(204);
  expect(await json('mixed', '{.spec.streams}')).toBe('["carts"]');
  expect((await ada.remove(`${path}/${cat('carts')}`)).status).toBe(204);
  expect((await ada.get(pathOf('mixed'))).body).toMatchObject({ streamCount: 0, streams: [] });
  // Renaming does not affect the streams, and adding a stream does not affect the name. They use different field
  // managers.
  await ada.post(path, { catalogEntryPublicId: cat('orders') });
  await ada.put(pathOf('mixed'), { name: 'Much mixed', description: 'all sorts' });
  await ada.post(path, { catalogEntryPublicId: cat('refunds') });
  expect((await ada.get(pathOf('mixed'))).body).toMatchObject({
    name: 'Much mixed',
    description: 'all sorts',
    streamCount: 2,
  });
});

test('concurrent changes of a list are all kept', async () => {
  await create('Busy');
  const path = `${pathOf('busy')}/streams`;
  const replies = await Promise.all(MORE.map(name => ada.post(path, { catalogEntryPublicId: cat(name) })));
  expect(replies.map(({ status }) => status)).toEqual(MORE.map(() => 204));
  expect(await json('busy', '{.spec.streams}')).toBe(JSON.stringify(MORE));
  const names = MORE.map(name => `Called ${name}`);
  const renamed = await Promise.all(names.map(name => ada.put<{ name: string }>(pathOf('busy'), { name })));
  expect(renamed.map(({ status }) => status)).toEqual(names.map(() => 200));
  expect(names).toContain(await json('busy', '{.spec.displayName}'));
});

test('fifty concurrent equal calls change the package once and return equal responses', async () => {
  await create('Crowd');
  const path = pathOf('crowd');
  for (const call of [
    () => ada.post(`${path}/streams`, { catalogEntryPublicId: cat('orders') }),
    () => ada.put(path, { name: 'The crowd' }),
    () => ada.post(`${path}/archive`),
    () => ada.remove(`${path}/streams/${cat('orders')}`),
  ]) {
    const generation = Number(await json('crowd', '{.metadata.generation}'));
    const replies = await Promise.all(Array.from({ length: 50 }, call));
    expect(new Set(replies.map(({ status, body }) => JSON.stringify([status, body]))).size).toBe(1);
    expect([200, 204]).toContain(replies[0]?.status);
    expect(await json('crowd', '{.metadata.generation}')).toBe(`${generation + 1}`);
  }
});

test('refuses unknown, malformed, and excessive requests', async () => {
  await create('Odd');
  const unknown = '0'.repeat(20);
  const path = `${pathOf('odd')}/streams`;
  const cases: [expected: number, reply: Promise<Reply>][] = [
    [404, ada.post(path, { catalogEntryPublicId: `cat_${unknown}` })],
    [422, ada.post(path, { catalogEntryPublicId: 'orders' })],
    [422, ada.post(path, {})],
    [404, ada.post(`${packages}/pkg_${unknown}/streams`, { catalogEntryPublicId: cat('orders') })],
    [204, ada.remove(`${path}/cat_${unknown}`)],
    [204, ada.remove(`${packages}/pkg_${unknown}/streams/${cat('orders')}`)],
    [400, ada.remove(`${path}/orders`)],
    [400, ada.get(`${packages}/odd`)],
    [404, ada.get(`${packages}/pkg_${unknown}`)],
    [404, ada.put(`${packages}/pkg_${unknown}`, { name: 'x' })],
    [404, ada.post(`${packages}/pkg_${unknown}/archive`)],
    [422, ada.post(packages, { name: '' })],
    [422, ada.post(packages, { name: 'x', colour: 'red' })],
    [422, ada.put(pathOf('odd'), { description: 'no name' })],
    [422, ada.get(`${packages}?status=gone`)],
  ];
  expect(await Promise.all(cases.map(async ([, reply]) => (await reply).status))).toEqual(
    cases.map(([status]) => status),
  );

  const full = Array.from({ length: 500 }, (_, n) => `stream-${n}`);
  await applyAs('argocd', pkg('shop', 'full', full));
  const isKnown = async () => (await ada.get(pathOf('full'))).status === 200;
  await eventually('the facade knows the package', isKnown, { withinMs: 30_000 });
  const tooMuch: Problem = await ada.post(`${pathOf('full')}/streams`, { catalogEntryPublicId: cat('orders') });
  expect([tooMuch.status, tooMuch.body.detail]).toEqual([422, expect.stringContaining('at most 500')]);
});

test('a list that is managed in Git is not changed, and the response names its manager', async () => {
  await applyAs('argocd', pkg('shop', 'from-git', ['orders']));
  const path = `${pathOf('from-git')}/streams`;
  // The version changes until the controller has written the status.
  const isReady = ['wait', '--for=condition=Ready', 'package/from-git', '-n', 'shop', '--timeout=120s'];
  await kubectl(world.installation.cluster, isReady);
  const version = await versionOf('from-git');
  for (const reply of [
    await ada.post<Problem['body']>(path, { catalogEntryPublicId: cat('carts') }),
    await ada.remove<Problem['body']>(`${path}/${cat('orders')}`),
  ]) {
    expect([reply.status, reply.body.code]).toEqual([409, 'field_managed']);
    expect(reply.body.errors).toEqual([{ pointer: '/spec/streams', detail: 'spec.streams is managed by argocd' }]);
  }
  expect((await ada.post(path, { catalogEntryPublicId: cat('orders') })).status).toBe(204);
  expect((await ada.remove(`${path}/${cat('carts')}`)).status).toBe(204);
  expect(await versionOf('from-git')).toBe(version);
  expect((await ada.get(pathOf('from-git'))).body).toMatchObject({ name: 'from-git', streamCount: 1 });
});

test('an archived package is not listed, cannot be changed, and releases its streams', async () => {
  await create('Old', { description: 'of last year' });
  const path = `${pathOf('old')}/streams`;
  await ada.post(path, { catalogEntryPublicId: cat('orders') });
  await ada.put(pathOf('old'), { name: 'Very old', description: 'of last year' });
  for (let n = 0; n < 3; n++) expect((await ada.post(`${pathOf('old')}/archive`)).status).toBe(204);
  const keysOf = async (query: string) => {
    const reply = await ada.get<{ data: Created[] }>(`${packages}${query}`);
    expectDeclared('listPackages', reply);
    return reply.body.data.map(({ key }) => key);
  };
  expect(await keysOf('')).not.toContain('old');
  expect(await keysOf('?status=Archived')).toEqual(['crowd', 'old']);
  expect(await keysOf('?status=all')).toEqual(expect.arrayContaining(['extras', 'old']));
  expect((await ada.get(pathOf('old'))).body).toMatchObject({ name: 'Very old', status: 'Archived', streamCount: 1 });

  const refused: Problem[] = [
    await ada.put(pathOf('old'), { name: 'New' }),
    await ada.post(path, { catalogEntryPublicId: cat('carts') }),
  ];
  expect(refused.map(({ status, body }) => [status, body.code])).toEqual(refused.map(() => [409, 'package_archived']));
  const key: Problem = await ada.post(packages, { name: 'Old', description: 'of last year' });
  expect([key.status, key.body.detail]).toEqual([409, expect.stringContaining('(Archived). Choose another name.')]);
  expect((await ada.post(path, { catalogEntryPublicId: cat('orders') })).status).toBe(204);
  expect((await ada.remove(`${path}/${cat('orders')}`)).status).toBe(204);
  expect(await json('old', '{.spec.streams} {.spec.archived} {.spec.displayName}')).toBe('[] true Very old');
});

test('lists have pages', async () => {
  const all: string[] = [];
  let cursor = '';
  do {
    const page = await ada.get<{ data: Created[]; nextCursor: string | null }>(
      `${packages}?status=all&limit=2${cursor && `&cursor=${cursor}`}`,
    );
    expect(page.body.data.length).toBeLessThanOrEqual(2);
    all.push(...page.body.data.map(({ key }) => key));
    cursor = page.body.nextCursor ?? '';
  } while (cursor !== '');
  const whole = await ada.get<{ data: Created[] }>(`${packages}?status=all`);
  expect(all).toEqual(whole.body.data.map(({ key }) => key));
  expect(all.length).toBeGreaterThan(4);
});

test('a package that is deleted during a Block cannot be changed, and keeps its key', async () => {
  await create('Leaving');
  await ada.post(`${pathOf('leaving')}/streams`, { catalogEntryPublicId: cat('orders') });
  await apply(world.installation.cluster, [
    block('shop', 'holds', { integration: 'other', target: { kind: 'Package', name: 'leaving' } }),
  ]);
  await waitForAll(world.installation.cluster, 'block', 'shop', 'Enforced');
  await kubectl(world.installation.cluster, ['delete', 'package/leaving', '-n', 'shop', '--wait=false']);
  await kubectl(world.installation.cluster, [
    'wait',
    'package/leaving',
    '-n',
    'shop',
    '--for=jsonpath={.status.conditions[?(@.type=="Ready")].reason}=StillBlocking',
    '--timeout=120s',
  ]);
  const path = `${pathOf('leaving')}/streams`;
  const refused: Problem[] = [
    await ada.put(pathOf('leaving'), { name: 'Staying' }),
    await ada.post(path, { catalogEntryPublicId: cat('carts') }),
    await ada.remove(`${path}/${cat('orders')}`),
    await ada.post(`${pathOf('leaving')}/archive`),
  ];
  expect(refused.map(({ status, body }) => [status, body.code])).toEqual(refused.map(() => [409, 'being_deleted']));
  expect((await ada.remove(`${path}/${cat('carts')}`)).status).toBe(204);
  const key: Problem = await ada.post(packages, { name: 'Leaving' });
  expect([key.status, key.body.detail]).toEqual([409, expect.stringContaining('being deleted')]);

  await kubectl(world.installation.cluster, ['delete', 'block/holds', '-n', 'shop']);
  expect((await create('Leaving')).key).toBe('leaving');
  expect((await ada.get(pathOf('leaving'))).body).toMatchObject({ streamCount: 0 });
});

test('packages of other producers are treated as missing', async () => {
  const foreign = await eve.get(packages);
  const absent = await eve.get('/waas/producer/ten_00000000000000000000/packages');
  expect([foreign.status, absent.status]).toEqual([403, 403]);
  expect(foreign.body).toEqual(absent.body);
  for (const reply of [
    await eve.post(packages, { name: 'Mine' }),
    await eve.put(pathOf('extras'), { name: 'Mine' }),
    await eve.post(`${pathOf('extras')}/archive`),
    await eve.remove(`${pathOf('extras')}/streams/${cat('orders')}`),
  ]) {
    expect([reply.status, reply.body]).toEqual([403, foreign.body]);
  }
});

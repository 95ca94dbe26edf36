import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sluice } from '../../support/sluice.ts';
import type { Problem, RestClient } from '../support/rest-client.ts';
import { kubectl } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type FacadeWorld, makeTenants, openFacadeWorld } from './support/facade-world.ts';

let world: FacadeWorld;
let sluice: Sluice;
let ada: RestClient;
let eve: RestClient;
let shop: string;

beforeAll(async () => {
  world = await openFacadeWorld();
  sluice = await world.start();
  ({ shop = '' } = await makeTenants(world, { shop: 'ada', other: 'eve' }));
  [ada, eve] = await Promise.all([world.as(sluice, 'ada'), world.as(sluice, 'eve')]);
});
afterAll(() => world?.stop());

test('a stream is applied, changed, and visible with kubectl; applying it again does not write anything', async () => {
  const wanted = {
    producerTenantPublicId: shop,
    name: 'Órdenes de compra',
    description: 'what was bought',
    eventTypes: ['order.paid', 'order.made', 'order.paid'],
    payloadSchema: '{"anything":true}',
    isPublic: true,
  };
  const first = await ada.put<{ publicId: string }>('/waas/streams', wanted);
  expect(first.status, JSON.stringify(first.body)).toBe(200);
  expect(first.body).toEqual({
    publicId: expect.stringMatching(/^cat_[0-9a-z]{20}$/),
    key: 'ordenes-de-compra',
    status: 'Published',
  });
  const version = () =>
    kubectl(world.installation.cluster, [
      'get',
      'catalogstream',
      'ordenes-de-compra',
      '-n',
      'shop',
      '-o',
      'jsonpath={.metadata.resourceVersion} {.spec}',
    ]);
  const before = await version();
  expect(before).toContain('"eventTypes":["order.made","order.paid"]');
  expect((await ada.put('/waas/streams', wanted)).body).toEqual(first.body);
  expect(await version()).toBe(before);

  const { description: _gone, isPublic: _too, ...less } = wanted;
  expect((await ada.put('/waas/streams', less)).body).toMatchObject({ status: 'Deprecated' });
  expect(await version()).not.toContain('what was bought');
  const read = await ada.get(`/waas/producer/${shop}/catalog/${first.body.publicId}`);
  expect(read.body).toMatchObject({ name: 'Órdenes de compra', description: null, status: 'Deprecated' });
  expect((await ada.get(`/waas/producer/${shop}/catalog`)).body).toEqual({ data: [], nextCursor: null });
  expect((await ada.get<{ data: unknown[] }>(`/waas/producer/${shop}/catalog?status=all`)).body.data).toHaveLength(1);
});

test.each([
  ['line ends, tabs and blanks', ' {\r\n\t"a": 1\n}\r \n'],
  ['letters of every width', 'é日本😀𝔘\u{10ffff}'],
  ['what YAML would change', '\u007f\u0085\u009f\u00a0\u2028\u2029\ufeff\u0001\b\f'],
  ['what no text interchanges', '\ufffe\uffff\ufdd0\u{1fffe}'],
  ['quotes and escapes', '"\\"\\\\u0000\\\'#:- &*!|>%@`'],
  ['128 KiB', `${'😀é"\r\n\t\\'.repeat(11_915)}${'x'.repeat(7)}`],
])('a payload schema is stored without changes: %s', async (what, payloadSchema) => {
  const name = `verbatim ${what}`;
  const applied = await ada.put<{ publicId: string; key: string }>('/waas/streams', {
    producerTenantPublicId: shop,
    name,
    payloadSchema,
  });
  const bytes = Buffer.byteLength(payloadSchema);
  expect(applied.status, JSON.stringify(applied.body)).toBe(200);
  const { publicId, key } = applied.body;
  const entry = await ada.get<{ payloadSchema: string }>(`/waas/producer/${shop}/catalog/${publicId}`);
  expect(expectDeclared('getCatalogEntry', entry).body.payloadSchema).toBe(payloadSchema);
  const object = await kubectl(world.installation.cluster, ['get', 'catalogstream', key, '-n', 'shop', '-o', 'json']);
  expect((JSON.parse(object) as { spec: { payloadSchema: string } }).spec.payloadSchema).toBe(payloadSchema);
  const listed = await ada.get<{ data: Record<string, unknown>[] }>(
    `/waas/producer/${shop}/catalog?status=all&limit=250`,
  );
  const found = expectDeclared('listCatalog', listed).body.data.find(each => each['publicId'] === publicId);
  expect(found).not.toHaveProperty('payloadSchema');
  expect(found).toMatchObject({
    payloadSchemaBytes: bytes,
    payloadSchemaSha256: createHash('sha256').update(payloadSchema).digest('hex'),
    queue: { name: key, visibility: 'Public' },
  });
});

test('another name with the same key is a conflict, and changes nothing', async () => {
  const wanted = { producerTenantPublicId: shop, name: 'Orders', isPublic: true };
  expect((await ada.put('/waas/streams', wanted)).status).toBe(200);
  const other: Problem = await ada.put('/waas/streams', { ...wanted, name: 'orders!', isPublic: false });
  expect(other.status).toBe(409);
  expect(other.body).toMatchObject({ code: 'stream_name_conflict', detail: expect.stringContaining('"Orders"') });
});

test('only one of two concurrent calls with different names for the same key succeeds; the other response names the owner of the key', async () => {
  for (let n = 0; n < 10; n++) {
    const names = [`Race ${n}`, `race-${n}`];
    const replies = await Promise.all(
      names.map(name => ada.put<Problem['body']>('/waas/streams', { producerTenantPublicId: shop, name })),
    );
    const reported = replies.map(({ status, body }) => (status === 200 ? 'made' : `${status} ${body.code}`));
    expect(reported.toSorted()).toEqual(['409 stream_name_conflict', 'made']);
    const winner = JSON.stringify(names[reported.indexOf('made')]);
    const { detail } = replies[1 - reported.indexOf('made')]?.body ?? {};
    expect(detail).toContain(winner);
    expect(detail).toContain('Choose another name. The key of a stream is derived from its name.');
  }
});

test('a stream that is being deleted is refused, and nothing is stored', async () => {
  const { cluster } = world.installation;
  const wanted = { producerTenantPublicId: shop, name: 'leaving', isPublic: true };
  expect((await ada.put('/waas/streams', wanted)).status).toBe(200);
  const hold = (finalizers: string) =>
    kubectl(cluster, ['patch', 'catalogstream/leaving', '-n', 'shop', '--type=merge', '-p', finalizers]);
  await hold('{"metadata":{"finalizers":["test.example/hold"]}}');
  await kubectl(cluster, ['delete', 'catalogstream/leaving', '-n', 'shop', '--wait=false']);
  const refused: Problem = await ada.put('/waas/streams', { ...wanted, description: 'again' });
  expect([refused.status, refused.body.code]).toEqual([409, 'being_deleted']);
  await hold('{"metadata":{"finalizers":null}}');
  expect((await ada.put('/waas/streams', wanted)).status).toBe(200);
});

test('foreign and missing objects have the same response', async () => {
  const foreign = await eve.get(`/waas/producer/${shop}/catalog`);
  const absent = await eve.get('/waas/producer/ten_00000000000000000000/catalog');
  expect(foreign.status).toBe(403);
  expect(absent.status).toBe(403);
  expect(absent.body).toEqual(foreign.body);
  expect((await eve.get('/waas/producer/shop/catalog')).status).toBe(400);
});

test.each([
  ['an unknown field', { name: 'x', colour: 'red' }, '/colour'],
  ['a wrong type', { name: 'x', isPublic: 'true' }, '/isPublic'],
  ['null for a choice', { name: 'x', isPublic: null }, '/isPublic'],
  ['no name', {}, '/name'],
  ['an event type with a space', { name: 'x', eventTypes: ['a b'] }, '/eventTypes/0'],
])('%s is reported with 422', async (_what, fields, pointer) => {
  const reply: Problem = await ada.put('/waas/streams', { producerTenantPublicId: shop, ...fields });
  expect(reply.status).toBe(422);
  expect(reply.headers.get('content-type')).toBe('application/problem+json');
  expect(reply.body.errors?.map(error => error.pointer)).toEqual([pointer]);
});

test('a field that kubectl manages is kept, and the response names its manager', async () => {
  const manifest = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'CatalogStream',
    metadata: { name: 'mixed', namespace: 'shop' },
    spec: { description: 'from Git', public: true },
  };
  await kubectl(
    world.installation.cluster,
    ['apply', '--server-side', '--field-manager=argocd', '-f', '-'],
    JSON.stringify(manifest),
  );
  const wanted = { producerTenantPublicId: shop, name: 'mixed', isPublic: true };
  for (const body of [wanted, { ...wanted, description: 'from REST' }]) {
    const reply: Problem = await ada.put('/waas/streams', body);
    expect(reply.status).toBe(409);
    expect(reply.body.code).toBe('field_managed');
    expect(reply.body.errors).toEqual([
      { pointer: '/spec/description', detail: 'spec.description is managed by argocd' },
    ]);
  }
  const same = await ada.put('/waas/streams', { ...wanted, description: 'from Git', eventTypes: ['a'] });
  expect(same.status, JSON.stringify(same.body)).toBe(200);
});

test('every call requires a token; the reference does not', async () => {
  const nobody = await fetch(`${sluice.facadeUrl}/waas/producer/${shop}/catalog`);
  expect(nobody.status).toBe(401);
  expect(nobody.headers.get('www-authenticate')).toMatch(/^Bearer/);
  expect((await fetch(`${sluice.facadeUrl}/waas/nothing`)).status).toBe(401);
  expect((await ada.get('/waas/nothing')).status).toBe(404);
  const wrong = await ada.call('POST', '/waas/streams', {});
  expect(wrong.status).toBe(405);
  expect(wrong.headers.get('allow')).toBe('PUT');
  const document = (await (await fetch(`${sluice.facadeUrl}/openapi.json`)).json()) as { paths: object };
  expect(Object.keys(document.paths)).toContain('/waas/streams');
  expect((await fetch(`${sluice.facadeUrl}/docs/`)).status).toBe(200);
});

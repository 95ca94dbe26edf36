import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import type { Problem } from '../support/rest-client.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { type Entry, openPartnerInbox, type PartnerInbox } from './support/partner-inbox.ts';

let inbox: PartnerInbox;
let { world, receiver, publisher, ada, eve, pushed, pulled, root, eventPath, list, read, eventIn } = {} as PartnerInbox;

beforeAll(async () => {
  inbox = await openPartnerInbox(100);
  ({ world, receiver, publisher, ada, eve, pushed, pulled, root, eventPath, list, read, eventIn } = inbox);
});
afterAll(() => inbox?.stop());

test('delivered events are listed with their bodies, in pages and in order, and hidden from others', async () => {
  await publisher.post(makeSample('first', 'red', '{"n":1}'), { headers: { 'content-type': 'application/json' } });
  await publisher.publish(makeSample('second', 'red', Buffer.from([0xff, 0x00])));
  await publisher.publish(makeSample('third', 'green', 'x'.repeat(20_000)));
  await eventIn('third', 'delivered');
  await eventIn('second', 'delivered');
  const first = expectDeclared('listEvents', await list('limit=2'));
  expect(first.body.data.map(({ eventId }) => eventId)).toEqual(['first', 'second']);
  const rest = await list(`limit=2&cursor=${first.body.nextCursor}`);
  expect(rest.body.data.map(({ eventId }) => eventId)).toEqual(['third']);
  expect(rest.body.nextCursor).toBeNull();
  for (const cursor of [first.body.nextCursor, rest.body.resumeCursor]) {
    const elsewhere = (await list(`limit=2&cursor=${cursor}`, pulled)) as unknown as Problem;
    expect([elsewhere.status, elsewhere.body.code]).toEqual([400, 'malformed_cursor']);
  }
  expect((await list('order=desc&limit=1')).body.data[0]?.eventId).toBe('third');
  expect((await list('state=dead,skipped')).body).toEqual({ data: [], nextCursor: null, resumeCursor: null });

  const [one, two] = first.body.data as [Entry, Entry];
  expect(one).toMatchObject({
    subscriptionPublicId: pushed,
    groupKey: 'red',
    bytes: 7,
    tokens: 1,
    state: 'delivered',
    attempts: 1,
  });
  expect(await read(one.id)).toMatchObject({
    body: '{"n":1}',
    bodyEncoding: 'utf8',
    contentType: 'application/json',
    reason: '204',
  });
  expect(await read(two.id)).toMatchObject({ body: '/wA=', bodyEncoding: 'base64' });
  expect((await eve.get(eventPath(one.id))).status).toBe(403);
  const byEve: Problem = await eve.get(`/waas/integrations/${publicId('Integration', 'shop', 'eve')}/events/${one.id}`);
  expect([byEve.status, byEve.body.code]).toEqual([404, 'unknown_event']);
  expect((await ada.get(eventPath(`evt_000000000000000${pushed.slice(4)}`))).status).toBe(404);
  expect((await ada.get(eventPath('evt_1'))).status).toBe(400);
  expect((await list('cursor=bm9uZQ')).status).toBe(400);
  expect((await list('state=lost')).status).toBe(422);
  const long = 'since=0001-01-01T00:00:00Z&until=1969-12-31T23:59:59Z';
  for (const order of ['asc', 'desc']) expect((await list(`${long}&order=${order}`)).body.data).toEqual([]);
  expect((await ada.get(`${root}/events`)).status).toBe(422);
});

test('an event is found by the webhook-id of its delivery, in the inbox that contains it', async () => {
  await publisher.publish(makeSample('shop/1 a', 'red', 'x'));
  await publisher.publish(makeSample('not mine', 'purple', 'x'));
  await eventIn('shop/1 a', 'delivered');
  const webhookId = String(receiver.attempts.at(-1)?.headers['webhook-id']);
  const find = async (query: string, subscription = pushed) =>
    (await list(`eventId=${encodeURIComponent(webhookId)}${query}`, subscription)).body.data;
  const found = expectDeclared('listEvents', await list(`eventId=${encodeURIComponent(webhookId)}`)).body;
  expect(found).toMatchObject({ data: [{ eventId: 'shop/1 a', state: 'delivered' }], nextCursor: null });
  const [event] = found.data as [Entry];
  expect((await list('limit=250')).body.data).toContainEqual(event);
  expect((await list(`cursor=${found.resumeCursor}`)).body.data).toEqual([]);
  expect(await read(event.id)).toMatchObject({ eventId: webhookId, body: 'x' });
  for (const query of [`&since=${event.acceptedAt}`, '&state=dead,delivered']) {
    expect(await find(query)).toEqual([event]);
  }
  for (const query of [`&until=${event.acceptedAt}`, `&since=${new Date().toISOString()}`, '&state=dead']) {
    expect(await find(query)).toEqual([]);
  }
  expect(await find('', pulled)).toEqual([]);
  expect((await list('eventId=not%20mine')).body).toEqual({ data: [], nextCursor: null, resumeCursor: null });
  const later = list('eventId=later&wait=30');
  await publisher.publish(makeSample('later', 'blue', 'x'));
  expect((await later).body.data.map(({ eventId }) => eventId)).toEqual(['later']);

  const both: Problem = (await list(`eventId=later&cursor=${found.resumeCursor}`)) as never;
  expect([both.status, both.body.errors?.[0]?.parameter]).toEqual([422, 'cursor']);
  const malformed: Problem = await ada.get(eventPath('order-1'));
  expect([malformed.status, malformed.body.errors?.[0]?.detail]).toEqual([400, expect.stringContaining('eventId')]);
});

test('a long poll returns when there is an event, or an empty list', async () => {
  const { resumeCursor } = (await list('limit=250')).body;
  const startedMs = performance.now();
  const nothing = await list(`wait=1&cursor=${resumeCursor}`);
  expect(nothing.body).toEqual({ data: [], nextCursor: null, resumeCursor });
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1_000);
  const polling = list(`wait=30&cursor=${resumeCursor}`);
  await publisher.publish(makeSample('polled', 'blue', 'x'));
  const publishedMs = performance.now();
  expect((await polling).body.data.map(({ eventId }) => eventId)).toEqual(['polled']);
  // The call does not wait for its whole time.
  expect(performance.now() - publishedMs).toBeLessThan(25_000);
});

test('16 long polls of a caller can wait, and its other calls are not affected', async () => {
  const { resumeCursor } = (await list('limit=250')).body;
  const polls = Array.from({ length: 20 }, () => list(`wait=10&cursor=${resumeCursor}`));
  expect((await list(`wait=0&cursor=${resumeCursor}`)).status).toBe(200);
  const answers = (await Promise.all(polls)) as unknown as Problem[];
  const statuses = [...Array<number>(16).fill(200), ...Array<number>(4).fill(429)];
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual(statuses);
  for (const { headers, body } of answers.filter(({ status }) => status === 429)) {
    expect(body.code).toBe('rate_limited');
    expect(body.detail).toContain('You have 16 calls that wait for events, which is the limit.');
    expect(headers.get('retry-after')).toBe('1');
  }
  expect((await list(`wait=1&cursor=${resumeCursor}`)).status).toBe(200);
});

test('skipping a waiting retry continues its key and can be repeated', async () => {
  receiver.behave(({ id }) => (id === 'stuck' ? 500 : 204));
  await publisher.publish(makeSample('stuck', 'red', 'x'));
  await publisher.publish(makeSample('behind', 'red', 'x'));
  const stuck = await eventIn('stuck', 'retrying');
  expect(receiver.delivered('ada').has('behind')).toBe(false);
  const open: Problem = await ada.post(`${eventPath(stuck.id)}/replay`);
  expect([open.status, open.body.code]).toEqual([409, 'event_open']);
  for (let n = 0; n < 3; n++) {
    const skipped = expectDeclared('skipEvent', await ada.post(`${eventPath(stuck.id)}/skip`));
    expect(skipped.status, JSON.stringify(skipped.body)).toBe(204);
  }
  const behind = await eventIn('behind', 'delivered');
  const ended: Problem = await ada.post(`${eventPath(behind.id)}/skip`);
  expect([ended.status, ended.body.code]).toEqual([409, 'event_ended']);
  const record = await read(stuck.id);
  expect(record).toMatchObject({ state: 'skipped', reason: 'skipped' });
  expect(record.history[0]).toMatchObject({ result: '500' });

  receiver.behave(({ id }) => (id.startsWith('old.') ? 500 : 204));
  for (let n = 0; n < 3; n++) await publisher.publish(makeSample(`old.${n}`, 'green', 'x'));
  const last = await eventIn('old.2', 'pending');
  const skip = () => ada.post<{ skipped: number }>(`${root}/skip`, { upTo: last.id, groupKey: 'green' });
  expect(expectDeclared('skipEvents', await skip()).body).toEqual({ skipped: 3, nextCursor: null });
  expect((await skip()).body.skipped).toBe(0);
  receiver.behave(() => 204);
});

test('a subscription without an endpoint pulls in order, and receives events again until they are acknowledged', async () => {
  for (const id of ['visit.0', 'visit.1']) await publisher.post(makeSample(id, 'blue', id), { queue: 'visits' });
  const pull = (more: object = {}) =>
    ada.post<{ data: (Entry & { body: string })[]; more: boolean }>(`${root}/pull`, { subscription: pulled, ...more });
  const first = expectDeclared('pullEvents', await pull({ waitSeconds: 10 }));
  expect(first.body.data.map(({ eventId, body }) => [eventId, body])).toEqual([['visit.0', 'visit.0']]);
  expect((await pull()).body).toEqual(first.body);
  await eventually('both events can be pulled', async () => (await pull({ all: true })).body.data.length === 2);
  const acknowledge = (id: string): Promise<Problem> =>
    ada.post(`${root}/acknowledge`, { subscription: pulled, events: [{ id }] });
  const event = first.body.data[0] as Entry;
  for (let n = 0; n < 3; n++) {
    expect(expectDeclared('acknowledgeEvents', await acknowledge(event.id)).status).toBe(204);
  }
  expect((await pull()).body.data.map(({ eventId }) => eventId)).toEqual(['visit.1']);
  expect(await read(event.id)).toMatchObject({ state: 'delivered', reason: 'acknowledged', attempts: 0 });

  const unknown: Problem = await acknowledge(`evt_000000000000000${pulled.slice(4)}`);
  expect([unknown.status, unknown.body.code, unknown.body.errors?.[0]?.pointer]).toEqual([
    404,
    'unknown_event',
    '/events/0',
  ]);
  const foreign: Problem = await acknowledge(`evt_000000000000000${pushed.slice(4)}`);
  expect([foreign.status, foreign.body.errors?.[0]?.pointer]).toEqual([422, '/events/0/id']);
  for (const path of ['pull', 'acknowledge']) {
    const events = path === 'pull' ? {} : { events: [{ id: `evt_000000000000000${pushed.slice(4)}` }] };
    const refused: Problem = await ada.post(`${root}/${path}`, { subscription: pushed, ...events });
    expect([refused.status, refused.body.code]).toEqual([409, 'has_endpoint']);
  }
  const startedMs = performance.now();
  await acknowledge((await pull()).body.data[0]?.id ?? '');
  expect((await pull({ waitSeconds: 1 })).body).toEqual({ data: [], more: false });
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1_000);
});

test('the inbox returns 503 while Redis is unavailable, and the call can be repeated', async () => {
  const one = (await list('limit=1')).body.data[0] as Entry;
  await world.installation.redis.kill('SIGKILL');
  try {
    const calls: Promise<Problem>[] = [
      ada.get(`${root}/events?subscription=${pushed}`),
      ada.get(eventPath(one.id)),
      ada.post(`${eventPath(one.id)}/skip`),
      ada.post(`${root}/subscriptions/${pushed}/test`),
      ada.post(`${root}/pull`, { subscription: pulled }),
      ada.get(`${root}/replays/once-more`),
    ];
    for (const reply of await Promise.all(calls)) {
      expect([reply.status, reply.body.code]).toEqual([503, 'unavailable']);
      expect(reply.headers.get('retry-after')).toBe('2');
    }
  } finally {
    await world.installation.redis.restart();
  }
  await eventually('the inbox returns events', async () => (await list('limit=1')).status === 200);
});

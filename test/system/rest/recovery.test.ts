import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { publicId } from '../../../src/core/ids/ids.ts';
import { cursorOf } from '../../../src/core/ids/list-cursor.ts';
import { eventually } from '../support/deadline.ts';
import { makeSample } from '../support/publisher.ts';
import type { Problem } from '../support/rest-client.ts';
import { activation, activationName, apply, block, conditionOf, kubectl, waitForAll } from '../support/world.ts';
import { expectDeclared } from './support/declared-answer.ts';
import { ago, openPartnerInbox, type PartnerInbox } from './support/partner-inbox.ts';

/** The fields of a replay or its price that the tests use. */
interface Replay {
  readonly replayId: string;
  readonly events: number;
  readonly tokens: number;
}

/** The number of tokens of the partner's account. */
const INCLUDED = 8;

let inbox: PartnerInbox;
let { world, receiver, publisher, ada, eve, pushed, pulled, root, eventPath, list, read, eventIn, used } =
  {} as PartnerInbox;

beforeAll(async () => {
  inbox = await openPartnerInbox(INCLUDED);
  ({ world, receiver, publisher, ada, eve, pushed, pulled, root, eventPath, list, read, eventIn, used } = inbox);
  const samples = Array.from({ length: 6 }, (_, n) => makeSample(`more.${n}`, 'green', 'x'));
  for (const sample of [
    makeSample('first', 'red', 'x'),
    makeSample('second', 'red', 'x'),
    makeSample('third', 'green', 'x'.repeat(20_000)),
    ...samples,
  ]) {
    await publisher.publish(sample);
  }
  for (const id of ['second', 'more.5']) await eventIn(id, 'delivered');
});
afterAll(() => inbox?.stop());

test('a test event is signed, free, needs no activation, and shows its result', async () => {
  const before = await used();
  const sent = expectDeclared('sendTestEvent', await ada.post<{ id: string }>(`${root}/subscriptions/${pushed}/test`));
  expect(sent.status).toBe(202);
  const { id } = sent.body;
  const { value: attempt } = await eventually('the test event is delivered', async () =>
    receiver.attempts.find(({ headers }) => headers['ce-type'] === 'sluice.test'),
  );
  const { secret } = (await ada.get<{ secret: string }>(`${root}/subscriptions/${pushed}/secret`)).body;
  const { value: detail } = await eventually('the result is recorded', async () => {
    const event = await read(id);
    return event.state === 'delivered' && event;
  });
  expect(detail).toMatchObject({
    eventId: id,
    type: 'sluice.test',
    groupKey: null,
    tokens: null,
    attempts: 1,
    reason: '204',
  });
  expect(attempt.headers).not.toHaveProperty('ce-partitionkey');
  const signed = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(name => [
    name,
    String(attempt.headers[name]),
  ]);
  const verified = new Webhook(secret).verify(detail.body ?? '', Object.fromEntries(signed) as Record<string, string>);
  expect(verified).toMatchObject({ type: 'sluice.test', data: { subscription: pushed } });
  const replayed: Problem = await ada.post(`${eventPath(id)}/replay`);
  expect([replayed.status, replayed.body.detail]).toEqual([
    410,
    'Test events cannot be replayed. Send another test event.',
  ]);
  expect(await used()).toBe(before);
  expect((await list('limit=250')).body.data.some(event => event.id === id)).toBe(false);

  receiver.behave(() => 500);
  const failing = (await ada.post<{ id: string }>(`${root}/subscriptions/${pushed}/test`)).body.id;
  await eventually('the test event has failed once', async () => (await read(failing)).state === 'dead');
  expect(await read(failing)).toMatchObject({ attempts: 1, reason: '500' });
  receiver.behave(() => 204);
  const none: Problem = await ada.post(`${root}/subscriptions/${pulled}/test`);
  expect([none.status, none.body.code]).toEqual([409, 'no_endpoint']);
});

test('a test event is sent once for an Idempotency-Key', async () => {
  const send = (to: string, key = 'smoke') =>
    ada.call<{ id: string }>('POST', `${root}/subscriptions/${to}/test`, undefined, { 'idempotency-key': key });
  const sent = await send(pushed);
  expect(sent.status).toBe(202);
  await eventually('the test event is delivered', async () => (await read(sent.body.id)).state === 'delivered');
  const again = await send(pushed);
  expect([again.status, again.body, again.headers.get('location')]).toEqual([
    202,
    sent.body,
    sent.headers.get('location'),
  ]);
  expect((await send(pushed, 'another')).body.id).not.toBe(sent.body.id);
  const conflict: Problem = await ada.call('POST', `${root}/subscriptions/${pulled}/test`, undefined, {
    'idempotency-key': 'smoke',
  });
  expect([conflict.status, conflict.body.code]).toEqual([422, 'idempotency_conflict']);
});

test('recovered events are sent immediately, in order, and free of charge', async () => {
  receiver.behave(() => 503);
  // Events use the Redis time, which may be a few milliseconds behind this clock.
  const since = ago(1_000);
  const ids = ['away.0', 'away.1', 'away.2'];
  for (const id of ids) await publisher.publish(makeSample(id, 'blue', 'x'));
  await eventIn('away.0', 'retrying');
  const retrying = await eventually('the next attempt is an hour later', async () => {
    const event = await eventIn('away.0', 'retrying');
    return Date.parse(event.nextAttemptAt ?? '') > Date.now() + 1_000_000 && event;
  });
  expect(retrying.value.attempts).toBe(2);
  receiver.clear();
  receiver.behave(() => 204);
  const before = await used();
  const recover = () => ada.post<{ count: number }>(`${root}/subscriptions/${pushed}/recover`, { since });
  const recovered = expectDeclared('recoverEvents', await recover());
  expect([recovered.status, recovered.body]).toEqual([202, { count: 1, replayRequired: 0, nextCursor: null }]);
  await eventIn('away.2', 'delivered');
  expect(receiver.attempts.map(({ id }) => id)).toEqual(ids);
  expect((await recover()).body.count).toBe(0);
  expect(await used()).toBe(before);
  expect((await ada.post(`${root}/subscriptions/${pushed}/recover`, {})).status).toBe(422);
});

test('a replay has a price, is charged once to the partner, and is marked; a Free account pays as long as it has tokens', async () => {
  const third = await eventIn('third', 'delivered');
  const [since, until] = [ago(600_000), ago(-600_000)];
  const range = { subscription: pushed, since, until, states: ['delivered'] };
  const price = expectDeclared('replayEvents', await ada.post<Replay>(`${root}/replay`, { ...range, dryRun: true }));
  expect(price.status).toBe(200);
  expect(price.body.tokens).toBe(price.body.events + 1);
  const before = await used();
  expect(price.body.tokens).toBeGreaterThan(INCLUDED - before);
  // A cursor with letters that cannot be part of a position.
  const position = Buffer.from('u'.repeat(15)).toString('base64url');
  const { nextCursor: ofEvents } = (await list('limit=1')).body;
  for (const cursor of [position, cursorOf(['replay', pushed], position), ofEvents]) {
    const lost: Problem = await ada.post(`${root}/replay`, { ...range, cursor });
    expect([lost.status, lost.body.code]).toEqual([400, 'malformed_cursor']);
  }
  const short: Problem = await ada.post(`${root}/replay`, range);
  expect([short.status, short.body.code]).toEqual([402, 'insufficient_tokens']);
  expect(await used()).toBe(before);

  receiver.clear();
  const replay = () =>
    ada.call<Replay>('POST', `${eventPath(third.id)}/replay`, undefined, { 'idempotency-key': 'once-more' });
  const first = expectDeclared('replayEvent', await replay());
  expect(first.status).toBe(202);
  expect(first.body).toMatchObject({
    replayId: 'once-more',
    subscriptionPublicId: pushed,
    events: 1,
    tokens: 2,
    complete: true,
  });
  for (let n = 0; n < 3; n++) expect((await replay()).body).toEqual(first.body);
  expect(expectDeclared('getReplay', await ada.get(`${root}/replays/once-more`)).body).toEqual(first.body);
  expect(await used()).toBe(before + 2);
  await eventually('the replay is delivered', async () => receiver.delivered('ada').has('third'));
  expect(receiver.attempts.map(({ headers }) => headers['webhook-replay'])).toEqual(['once-more']);
  await eventually('the replay is recorded', async () => (await read(third.id)).replays[0]?.state === 'delivered');
  expect(receiver.attempts).toHaveLength(1);

  const one = await eventIn('first', 'delivered');
  const conflict: Problem = await ada.call('POST', `${eventPath(one.id)}/replay`, undefined, {
    'idempotency-key': 'once-more',
  });
  expect([conflict.status, conflict.body.code]).toEqual([422, 'idempotency_conflict']);
  const [unnamed, again] = [
    await ada.post<Replay>(`${eventPath(one.id)}/replay`),
    await ada.post<Replay>(`${eventPath(one.id)}/replay`),
  ];
  expect(unnamed.body).toMatchObject({ replayId: expect.stringMatching(/^rpl_/), tokens: 1 });
  expect(again.body).toEqual(unnamed.body);
  expect(await used()).toBe(before + 3);
  expect((await eve.get(`/waas/integrations/${publicId('Integration', 'shop', 'eve')}/replays/once-more`)).status).toBe(
    404,
  );
});

test('a blocked stream refuses replays without charging anything, but still returns events', async () => {
  const { cluster } = world.installation;
  const second = await eventIn('second', 'delivered');
  const before = await used();
  await apply(cluster, [
    block('shop', 'kept', { integration: 'ada', target: { kind: 'CatalogStream', name: 'orders' } }),
  ]);
  await waitForAll(cluster, 'block', 'shop', 'Enforced');
  const range = { subscription: pushed, since: ago(600_000), until: ago(0) };
  for (const [path, body] of [
    [`${eventPath(second.id)}/replay`, undefined],
    [`${root}/replay`, range],
    [`${root}/replay`, { ...range, dryRun: true }],
    [`${root}/subscriptions/${pushed}/recover`, { since: ago(600_000) }],
  ] as const) {
    const refused: Problem = await ada.post(path, body);
    expect([refused.status, refused.body.code], path).toEqual([409, 'stream_blocked']);
  }
  expect((await read(second.id)).state).toBe('delivered');
  expect(await used()).toBe(before);
  await kubectl(cluster, ['delete', 'block', 'kept', '-n', 'shop']);
  await eventually(
    'the replay is allowed',
    async () => (await ada.post(`${root}/replay`, { ...range, dryRun: true })).status === 200,
    // Each call costs 100 points, and a caller without points is refused for up to a minute.
    { everyMs: 1_000 },
  );
  await apply(cluster, [activation('shop', 'ada', 'red', { revoked: true })]);
  const gate = () => conditionOf(cluster, `activation/${activationName('ada', 'red')}`, 'shop', 'Effective');
  await eventually('the group key is inactive', async () => (await gate()) === 'False/Revoked');
  const inactive: Problem = await ada.post(`${eventPath(second.id)}/replay`);
  expect([inactive.status, inactive.body.code]).toEqual([409, 'group_key_inactive']);
});

test('a disabled endpoint does not receive test events, and the response contains the call that enables it', async () => {
  const subscription = `${root}/subscriptions/${pushed}`;
  receiver.behave(() => 410);
  await publisher.publish(makeSample('disables', 'green', 'x'));
  await eventually(
    'the endpoint is disabled',
    async () => (await ada.get<{ reason: string }>(subscription)).body.reason === 'EndpointDisabled',
    { withinMs: 20_000 },
  );
  const refused: Problem = await ada.post(`${subscription}/test`);
  expect([refused.status, refused.body.code]).toEqual([409, 'subscription_not_live']);
  expect(refused.body.detail).toMatch(/^The endpoint is disabled\. .*\/enable\.$/);
  receiver.behave(() => 204);
  expect((await ada.post(`${subscription}/enable`)).status).toBe(200);
  await eventIn('disables', 'delivered');
});

test('with an endpoint, events cannot be pulled', async () => {
  const refused: Problem = await ada.post(`${root}/pull`, { subscription: pushed });
  expect([refused.status, refused.body.code]).toEqual([409, 'has_endpoint']);
  expect(refused.body.detail).toContain('To pull and acknowledge events instead, remove the endpoint.');
});

test('a subscription whose stream has been deleted is not live, and does not ask for a retry', async () => {
  const [known] = (await list('limit=1')).body.data;
  const ofDeleted = (known?.id ?? '').replace(pushed.slice('sub_'.length), pulled.slice('sub_'.length));
  await kubectl(world.installation.cluster, ['delete', 'catalogstream', 'visits', '-n', 'shop']);
  const range = { subscription: pulled, since: ago(600_000), until: ago(0) };
  for (const [path, body] of [
    [`${root}/pull`, { subscription: pulled }],
    [`${root}/subscriptions/${pulled}/test`, undefined],
    [`${root}/subscriptions/${pulled}/recover`, { since: ago(600_000) }],
    [`${root}/replay`, range],
    [`${root}/replay`, { ...range, dryRun: true }],
    [`${eventPath(ofDeleted)}/replay`, undefined],
  ] as const) {
    const { value: refused } = await eventually(
      `${path} is refused because the stream does not exist`,
      async () => {
        const answer: Problem = await ada.post(path, body);
        return answer.body.code === 'subscription_not_live' && answer;
      },
      { withinMs: 20_000 },
    );
    expect([refused.status, refused.body.detail], path).toEqual([
      409,
      "The producer does not have this subscription's stream. It may have been deleted.",
    ]);
  }
});

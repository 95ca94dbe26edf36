import { describe, expect, test } from 'vitest';
import { refMs } from '../../../core/ids/refs.ts';
import { bodyText, EventDetail, EventEntry, eventDetail, eventEntry, PulledEntry, pulledEntry } from './event-views.ts';

const REF = '01mzc9r00000001';
const SUBSCRIPTION = 'sub_0123456789abcdefghjk';
const meta = {
  id: 'order-1',
  type: 'order.paid',
  groupKey: 'a',
  time: refMs(REF),
  source: '/x',
  contentType: 'text/plain',
};

describe('a body', () => {
  test('is returned as text if all of it is text', () => {
    expect(bodyText(Buffer.from('{"ä":1}'))).toEqual({ body: '{"ä":1}', bodyEncoding: 'utf8' });
    expect(bodyText(Buffer.from('\ufeffa'))).toEqual({ body: '\ufeffa', bodyEncoding: 'utf8' });
    expect(bodyText(Buffer.alloc(0))).toEqual({ body: '', bodyEncoding: 'utf8' });
  });

  test('is returned as base64 otherwise', () => {
    const bytes = Buffer.from([0xff, 0x00, 0xc3]);
    const { body, bodyEncoding } = bodyText(bytes);
    expect(bodyEncoding).toBe('base64');
    expect(Buffer.from(body, 'base64')).toEqual(bytes);
  });
});

test('an expired event only contains its progress', () => {
  const progress = { state: 'dead', attempts: 3, history: [], endedMs: 1_800_000_000_000, reason: '500' } as const;
  const entry = eventEntry(
    {
      ref: REF,
      groupKey: undefined,
      acceptedMs: refMs(REF),
      meta: undefined,
      bytes: undefined,
      tokens: undefined,
      progress,
    },
    SUBSCRIPTION,
  );
  expect(EventEntry.parse(entry)).toEqual(entry);
  expect(entry).toMatchObject({
    id: `evt_${REF}${SUBSCRIPTION.slice(4)}`,
    eventId: null,
    groupKey: null,
    tokens: null,
    state: 'dead',
    endedAt: '2027-01-15T08:00:00.000Z',
    reason: '500',
    nextAttemptAt: null,
    replayId: null,
  });
});

test('an event contains its attempts, replays, and responses', () => {
  const history = [{ atMs: 1_800_000_000_000, result: '500', latencyMs: 7 }];
  const detail = eventDetail(
    {
      ref: REF,
      acceptedMs: refMs(REF),
      groupKey: 'a',
      meta: { ...meta, forward: { 'x-trace': '1' } },
      bytes: 2,
      tokens: 1,
      body: Buffer.from('hi'),
      withheld: undefined,
      progress: { state: 'retrying', attempts: 1, history, dueMs: 1_800_000_005_000 },
      replays: [{ replayId: 'rpl_1', state: 'pending', attempts: 0, history: [] }],
      responses: [{ attempt: 1, body: Buffer.from([0xff]), truncated: true }],
    },
    SUBSCRIPTION,
  );
  expect(EventDetail.parse(detail)).toEqual(detail);
  expect(detail).toMatchObject({
    eventId: 'order-1',
    body: 'hi',
    bodyEncoding: 'utf8',
    bodyWithheld: null,
    headers: { 'x-trace': '1' },
    nextAttemptAt: '2027-01-15T08:00:05.000Z',
    history: [{ at: '2027-01-15T08:00:00.000Z', result: '500', latencyMs: 7 }],
    replays: [{ replayId: 'rpl_1', state: 'pending' }],
    responses: [{ replayId: null, attempt: 1, body: '/w==', bodyEncoding: 'base64', truncated: true }],
  });
});

test('a pulled event contains its replay', () => {
  const pulled = pulledEntry(
    { ref: REF, replayId: 'rpl_1', groupKey: 'a', meta, body: Buffer.from('hi') },
    SUBSCRIPTION,
  );
  expect(PulledEntry.parse(pulled)).toEqual(pulled);
  expect(pulled).toMatchObject({ replayId: 'rpl_1', bytes: 2, contentType: 'text/plain', body: 'hi' });
});

describe('headers of an event in a delivery', () => {
  const pull = (more: object) =>
    pulledEntry(
      { ref: REF, replayId: undefined, groupKey: 'a', meta: { ...meta, ...more }, body: Buffer.from('hi') },
      SUBSCRIPTION,
    ).headers;
  const attributes = { specversion: '1.0', id: 'e', source: '/shop', type: 'order.paid', subject: 'caf%C3%A9' };
  const sent = Object.fromEntries(Object.entries(attributes).map(([name, value]) => [`ce-${name}`, value]));

  test('contain the attributes of a CloudEvent in binary mode, and forwarded headers', () => {
    expect(pull({ attributes, forward: { 'x-trace': '1' } })).toEqual({ ...sent, 'x-trace': '1' });
  });

  test('are empty for a structured CloudEvent because its attributes are in the body', () => {
    expect(pull({ contentType: 'application/cloudevents+json', forward: { 'x-trace': '1' } })).toEqual({
      'x-trace': '1',
    });
  });

  test('contain attributes of Sluice for any other event', () => {
    expect(pull({})).toMatchObject({ 'ce-id': 'order-1', 'ce-source': '/x', 'ce-partitionkey': 'a' });
  });

  test('are omitted together with the body', () => {
    const event = {
      ref: REF,
      acceptedMs: refMs(REF),
      groupKey: 'a',
      meta: { ...meta, attributes },
      bytes: 2,
      tokens: 1,
      progress: { state: 'pending', attempts: 0, history: [] } as const,
      replays: [],
      responses: [],
    };
    const shown = eventDetail({ ...event, body: Buffer.from('hi'), withheld: undefined }, SUBSCRIPTION);
    expect(shown.headers).toEqual(sent);
    const withheld = eventDetail({ ...event, body: undefined, withheld: 'PAUSED' }, SUBSCRIPTION);
    expect([withheld.headers, withheld.bodyWithheld]).toEqual([{}, 'paused']);
    expect(EventDetail.parse(withheld)).toEqual(withheld);
  });
});

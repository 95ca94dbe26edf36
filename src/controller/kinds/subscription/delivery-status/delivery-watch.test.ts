import { expect, test } from 'vitest';
import { createManualClock } from '../../../../../test/support/manual-clock.ts';
import type { DeliveryStatus } from '../../../../api/delivery-status.ts';
import type { DeliveryFields } from '../../../../core/delivery/delivery-state.ts';
import { generationOf } from '../../../../core/ids/ids.ts';
import { createDeliveryWatch } from './delivery-watch.ts';
import { createDeliveryWriter } from './writer.ts';

const START_MS = 1_800_000_000_000;
const HOUR_MS = 3_600_000;
const UID = '5f0c7a1e-0000-4000-8000-000000000001';
const INC = generationOf(UID);
const SUB = 'sub_01234567890123456789';
const REF = '01mxhs0q0000001';
const inbox = { integration: 'int_1', sub: SUB, inc: INC };

function start(reported?: DeliveryStatus) {
  const clock = createManualClock();
  const redis = new Map<string, DeliveryFields>();
  const events: string[] = [];
  const reads: number[] = [];
  const written: string[] = [];
  let status = reported;
  let failing = false;
  let hasStream = true;
  const subscription = () =>
    ({
      metadata: { namespace: 'ns', name: 'a', uid: UID, resourceVersion: '1' },
      status: { delivery: status },
    }) as never;
  const writer = createDeliveryWriter({
    clock,
    write: key => {
      written.push(key);
      status = watch.statusOf(subscription());
    },
  });
  const watch = createDeliveryWatch({
    read: async inboxes => {
      reads.push(inboxes.length);
      if (failing) throw new Error('unavailable');
      return inboxes.map(({ sub }) => redis.get(sub));
    },
    subscriptionsOf: sub => (sub === SUB ? [subscription()] : []),
    retentionMsOf: () => 168 * HOUR_MS,
    hasStream: () => hasStream,
    writer,
    record: (_subscription, note) => events.push(`${note.type} ${note.reason}: ${note.message}`),
    nowMs: () => START_MS + clock.nowMs(),
    clock,
    log: { debug: () => {} },
  });
  const term = new AbortController();
  watch.begin(term.signal);
  return {
    clock,
    redis,
    events,
    reads,
    written,
    watch,
    term,
    fail: (is: boolean) => {
      failing = is;
    },
    /** Deletes or creates the stream, and reconciles the Subscription. */
    setStream: (exists: boolean) => {
      hasStream = exists;
      status = watch.statusOf(subscription());
    },
    status: () => status,
    audit: (fields: DeliveryFields, inc = INC) => watch.noteAll(new Map([[SUB, { ...fields, inc }]])),
    alarm: async (fields: DeliveryFields) => {
      redis.set(SUB, fields);
      watch.onAlarm(inbox);
      await clock.advance(100);
    },
  };
}

const FAILS = { delivery: `HttpError ${START_MS} 0 0` };
const deadAt = (ms: number) => ({
  delivery: `HttpError ${START_MS} 1 0`,
  'n:dead': '1',
  'n:routed': '1',
  dead: `${ms} ${REF} ${REF}`,
});

test('reads and shows repeated alarms once', async () => {
  const it = start();
  it.redis.set(SUB, FAILS);
  for (let n = 0; n < 5; n++) it.watch.onAlarm(inbox);
  await it.clock.advance(100);
  expect(it.reads).toEqual([1]);
  expect(it.status()).toEqual({
    lastAttempt: 'HttpError',
    lastAttemptSince: '2027-01-15T08:00:00Z',
    deadLetters: false,
    backlog: '0',
  });
});

test('writes nothing if the audit finds the state that is already shown', async () => {
  const it = start();
  for (let pass = 0; pass < 10; pass++) {
    it.audit({});
    await it.clock.advance(60_000);
  }
  await it.alarm(FAILS);
  expect(it.written).toHaveLength(1);
  for (let pass = 0; pass < 10; pass++) {
    it.audit(FAILS);
    await it.clock.advance(60_000);
  }
  expect(it.written).toHaveLength(1);
});

test('uses the audit if an alarm is missing or unreadable', async () => {
  const it = start();
  it.fail(true);
  await it.alarm(FAILS);
  expect(it.status()).toBeUndefined();
  it.audit(FAILS);
  await it.clock.advance(0);
  expect(it.status()?.lastAttempt).toBe('HttpError');
});

test('a backlog that one audit finds is only shown if the next audit finds it as well', async () => {
  const it = start();
  const waits = { delivery: '- 0 0 1', 'n:routed': '5' };
  it.audit(waits);
  await it.clock.advance(60_000);
  it.audit({});
  it.audit(waits);
  await it.clock.advance(60_000);
  expect(it.written).toEqual([]);
  it.audit(waits);
  await it.clock.advance(0);
  expect(it.status()?.backlog).toBe('1+');
  await it.alarm({});
  await it.clock.advance(10_000);
  expect(it.status()?.backlog).toBe('0');
});

test('a backlog and dead letters are no longer shown once the stream is gone, or after it was created again', async () => {
  const it = start();
  await it.alarm({ ...deadAt(START_MS), delivery: `HttpError ${START_MS} 1 2`, 'n:routed': '13' });
  const gone = { lastAttempt: 'HttpError', lastAttemptSince: '2027-01-15T08:00:00Z', deadLetters: false, backlog: '0' };
  expect(it.status()).toEqual({ ...gone, deadLetters: true, backlog: '10+' });
  it.setStream(true);
  expect(it.status()?.backlog).toBe('10+');
  for (const exists of [false, true]) {
    it.setStream(exists);
    expect(it.status()).toEqual(gone);
  }
  await it.clock.advance(60_000);
  it.audit({});
  await it.clock.advance(60_000);
  expect([it.written.length, it.status()]).toEqual([1, gone]);
});

test('does not write a change that was undone while waiting', async () => {
  const it = start();
  await it.alarm(FAILS);
  await it.alarm({ delivery: `Succeeded ${START_MS} 0 0` });
  await it.alarm(FAILS);
  await it.clock.advance(60_000);
  expect(it.written).toHaveLength(1);
  expect(it.status()?.lastAttempt).toBe('HttpError');
});

test('the state of another generation is not shown', async () => {
  const it = start();
  it.audit(FAILS, 'another');
  await it.clock.advance(60_000);
  expect(it.written).toEqual([]);
});

test('the first dead letter of an hour is reported once by an Event with its id', async () => {
  const it = start();
  await it.alarm(deadAt(START_MS + 50));
  await it.alarm(deadAt(START_MS + 50));
  it.audit(deadAt(START_MS + 50));
  expect(it.events).toEqual([
    expect.stringMatching(/^Warning DeadLetter: event evt_01mxhs0q000000101234567890123456789 /),
  ]);
  await it.clock.advance(HOUR_MS);
  await it.alarm(deadAt(START_MS + HOUR_MS));
  expect(it.events).toHaveLength(2);
  expect(it.status()?.deadLetters).toBe(true);
});

test('a new leader does not repeat the Events of its predecessor, and records Events in between', async () => {
  const known = start({ deadLetters: true, backlog: '0' });
  known.audit(deadAt(START_MS - 1_000));
  expect(known.events).toEqual([]);
  const between = start({ deadLetters: false, backlog: '0' });
  between.audit(deadAt(START_MS - 1_000));
  expect(between.events).toHaveLength(1);
  const old = start({ deadLetters: false, backlog: '0' });
  old.audit(deadAt(START_MS - HOUR_MS));
  expect(old.events).toEqual([]);
  const recovered = start({ deadLetters: false, backlog: '0' });
  recovered.audit({ ...deadAt(START_MS - 1_000), 'n:dead': '0' });
  expect(recovered.events).toEqual([]);
});

test('a process that does not lead does not read, write, or record anything', async () => {
  const it = start();
  it.term.abort();
  await it.alarm(deadAt(START_MS));
  it.audit(deadAt(START_MS));
  await it.clock.advance(60_000);
  expect([it.reads, it.written, it.events]).toEqual([[], [], []]);
});

import { expect, test } from 'vitest';
import { fullChunks, noteText, parseRecords, recordsField } from './record.ts';

const REF = `${(1_790_000_000_000).toString(16).padStart(11, '0')}0001`;
const SLOT = Buffer.from([0x3b, 0x3b, 0x3b, 0x3b, 0x3b]);
const chunkOf = (...texts: string[]) =>
  Buffer.concat([Buffer.from([2]), ...texts.flatMap(text => [SLOT, Buffer.from(text)])]);

test('reads records, even if a slot contains the end mark in its bytes', () => {
  const [first, second, ...others] = parseRecords(REF, chunkOf('d5dc 1 204 1f;', 'x10 2 timeout -,5 500 a;'));
  expect(first).toMatchObject({
    outcome: 'delivered',
    endedMs: 1_790_000_001_500,
    attempts: 1,
    reason: '204',
    latencyMs: 31,
  });
  expect(second).toEqual({
    slot: first?.slot,
    outcome: 'dead',
    endedMs: 1_790_000_000_016,
    attempts: 2,
    reason: 'timeout',
    failed: [{ endedMs: 1_790_000_000_005, reason: '500', latencyMs: 10 }],
  });
  expect(others).toEqual([]);
});

test('reads that a dead letter was recovered', () => {
  const [again, first] = parseRecords(REF, chunkOf('X10 2 500 1;', 'x10 2 500 1;'));
  expect([again?.outcome, again?.recovered]).toEqual(['dead', true]);
  expect(first).not.toHaveProperty('recovered');
});

test('returns the records before damage in a chunk', () => {
  expect(parseRecords(REF, chunkOf('d1 1 200 5;', 'd1 1 20'))).toHaveLength(1);
  expect(parseRecords(REF, Buffer.alloc(0))).toEqual([]);
});

test('returns the fields of an event and of a replay, and the full chunks before a chunk', () => {
  expect([recordsField('r'), recordsField('r', 'id')]).toEqual(['r', 'r:id']);
  expect(fullChunks('r', chunkOf())).toEqual(['r\0' + '1', 'r\0' + '2']);
});

test('a note has no latency if no request was sent', () => {
  expect([noteText({ reason: '200', latencyMs: 30.6 }), noteText({ reason: 'skipped' })]).toEqual([
    '200 1f',
    'skipped -',
  ]);
});

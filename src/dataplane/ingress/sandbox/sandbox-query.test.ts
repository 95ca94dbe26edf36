import { expect, test } from 'vitest';
import { readSandboxQuery } from './sandbox-query.ts';

test.each([
  ['', {}, undefined],
  ['?', {}, undefined],
  ['?sb_fail_code=503', { failCode: 503 }, undefined],
  ['?sb_fail_code=300&sb_fail_count=0', { failCode: 300, failCount: 0 }, undefined],
  ['?sb_fail_code=599&sb_fail_count=20&runId=A-z.0_9', { failCode: 599, failCount: 20 }, 'A-z.0_9'],
  ['?%73b_fail_count=%32', { failCount: 2 }, undefined],
  [`?runId=${'r'.repeat(64)}`, {}, 'r'.repeat(64)],
  ['?utm_source=x&runId=a&utm_source=y&id=1&a&=b&run=2', {}, 'a'],
  ['?runId=...a', {}, '...a'],
])('%s requests %j', (query, simulation, runId) => {
  expect(readSandboxQuery(`/events/sandbox/t/q${query}`)).toEqual({ simulation, runId });
});

test.each([
  ['sb_fail_code=', 'sb_fail_code'],
  ['sb_fail_code', 'sb_fail_code'],
  ['sb_fail_code=299', 'sb_fail_code'],
  ['sb_fail_code=600', 'sb_fail_code'],
  ['sb_fail_code=0500', 'sb_fail_code'],
  ['sb_fail_code=5e2', 'sb_fail_code'],
  ['sb_fail_code=+500', 'sb_fail_code'],
  ['sb_fail_code=500.0', 'sb_fail_code'],
  ['sb_fail_code=500&sb_fail_code=500', 'sb_fail_code'],
  ['sb_fail_count=', 'sb_fail_count'],
  ['sb_fail_count=-1', 'sb_fail_count'],
  ['sb_fail_count=21', 'sb_fail_count'],
  ['sb_fail_count=x', 'sb_fail_count'],
  ['sb_fail_count=%00', 'sb_fail_count'],
  ['runId=', 'runId'],
  ['runId=a/b', 'runId'],
  ['runId=a b', 'runId'],
  ['runId=%C3%A4', 'runId'],
  [`runId=${'r'.repeat(65)}`, 'runId'],
  ['runId=.', 'runId'],
  ['runId=%2E.', 'runId'],
  ['runId=...', 'runId'],
  ['runId=a&runId=b', 'runId'],
  ['RUNID=a', 'runId'],
  ['+runId=a', 'runId'],
  ['a=1;runId=b', 'runId'],
  ['a=1#runId=b', 'runId'],
  ['SB_FAIL_CODE=500', 'sb_fail_code'],
])('%s reports the wrong parameter, but not its value', (query, parameter) => {
  const read = readSandboxQuery(`/events/sandbox/t/q?${query}`);
  if (!('errors' in read)) throw new Error('the value was accepted');
  expect(read.errors.map(each => each.parameter)).toEqual([parameter]);
  expect(read.errors[0]?.detail).toMatch(/^(must be|may be given once)/);
});

test('all faults are reported together', () => {
  const read = readSandboxQuery('/e?sb_fail_code=1&sb_fail_count=x&runId=');
  expect('errors' in read && read.errors.map(({ parameter }) => parameter)).toEqual([
    'sb_fail_code',
    'sb_fail_count',
    'runId',
  ]);
});

test.each([
  ['sbfail=1', 'sbfail', 'sb_fail_count'],
  ['sb_fail_codes=503', 'sb_fail_codes', 'did you mean sb_fail_code?'],
  ['Run_Id=a', 'Run_Id', 'did you mean runId?'],
  ['RUN-ID=a', 'RUN-ID', 'known: sb_fail_code, sb_fail_count, runId'],
  ['sb_dry=1&dry=1', 'sb_dry', 'known: sb_fail_code, sb_fail_count, runId'],
])('%s: a misspelled parameter is refused', (query, parameter, words) => {
  const read = readSandboxQuery(`/events/sandbox/t/q?${query}`);
  if (!('errors' in read)) throw new Error('the value was accepted');
  expect(read.errors).toEqual([{ parameter, detail: expect.stringContaining(words) }]);
});

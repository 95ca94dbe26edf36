import { array, assert, boolean, constantFrom, property } from 'fast-check';
import { expect, test } from 'vitest';
import { findSandboxParameter } from './sandbox-parameters.ts';

test.each([
  ['/e?sb_fail_code=500', 'sb_fail_code'],
  ['/e?sb_fail_count', 'sb_fail_count'],
  ['/e?runId=', 'runId'],
  ['/e?a=b&runId=x', 'runId'],
  ['/e?a=b&&runId', 'runId'],
  ['/e?%72un%49d=x', 'runId'],
  ['/e?sb%5ffail%5Fcode=1', 'sb_fail_code'],
  ['/e?+runId+=1', 'runId'],
  ['/e?RUNID=1', 'runId'],
  ['/e?a=1;runId=2', 'runId'],
  ['/e?a=%ff&sb_fail_count=2', 'sb_fail_count'],
  ['/e#x?runId=1', 'runId'],
  ['/e#runId=1', 'runId'],
  ['/e?a=1#sb_fail_code', 'sb_fail_code'],
  ['/e?runId=1&runId=2', 'runId'],
])('%s contains %s', (target, name) => {
  expect(findSandboxParameter(target)).toBe(name);
});

test.each(['/e', '/e?', '/e?a=runId', '/e?runIds=1', '/e?x_runId=1', '/e/runId?x=sb_fail_code', '/e?run%2549d=1'])(
  '%s does not contain sandbox parameters',
  target => {
    expect(findSandboxParameter(target)).toBeUndefined();
  },
);

test('a name can be written with any mix of plain and percent-encoded letters', () => {
  assert(
    property(
      constantFrom('sb_fail_code', 'sb_fail_count', 'runId'),
      array(boolean(), { minLength: 13, maxLength: 13 }),
      constantFrom('', '=', '=5', '=%00'),
      (name, encoded, value) => {
        const spelled = Array.from(name, (letter, index) =>
          encoded[index] === true ? `%${letter.charCodeAt(0).toString(16)}` : letter,
        );
        expect(findSandboxParameter(`/events/t/q?x=1&${spelled.join('')}${value}`)).toBe(name);
      },
    ),
  );
});

test('more than 64 parameters are too many, not counting empty parameters', () => {
  const many = (count: number) => Array.from({ length: count }, (_, n) => `%61${n}=1`).join('&');
  expect(findSandboxParameter(`/e?${many(64)}`)).toBeUndefined();
  expect(() => findSandboxParameter(`/e?${many(65)}`)).toThrow(RangeError);
  expect(findSandboxParameter(`/e?${'&;'.repeat(8_000)}runId`)).toBe('runId');
});

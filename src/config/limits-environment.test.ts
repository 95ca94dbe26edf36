import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { DEFAULT_LIMITS } from '../core/limits/limits.ts';
import { LIMITS_ENVIRONMENT, readInvitedLimits, readLimits } from './limits-environment.ts';

const Environment = z.object(LIMITS_ENVIRONMENT);

function problemsOf(variables: Partial<Record<keyof typeof LIMITS_ENVIRONMENT, string>>): string[] {
  return (Environment.safeParse(variables).error?.issues ?? []).map(
    ({ path, message }) => `${path.join('.')}: ${message}`,
  );
}

test('an installation without variables has the shipped defaults, and no ceilings', () => {
  expect(readLimits(Environment.parse({}))).toEqual({ byPlan: DEFAULT_LIMITS, ceilings: {} });
});

test('omitted limits keep their defaults', () => {
  const { byPlan } = readLimits(Environment.parse({ SLUICE_FREE_LIMITS: ' streams = 5 , storedBytes=0,' }));
  expect(byPlan.Free).toEqual({ ...DEFAULT_LIMITS.Free, streams: 5, storedBytes: 0 });
  expect(byPlan.Metered).toEqual(DEFAULT_LIMITS.Metered);
});

test('unlimited removes a default', () => {
  const { byPlan } = readLimits(Environment.parse({ SLUICE_METERED_LIMITS: 'streams=unlimited' }));
  const { streams: _, ...others } = DEFAULT_LIMITS.Metered;
  expect(byPlan.Metered).toEqual(others);
});

test('ceilings are not combined with defaults', () => {
  const { ceilings } = readLimits(Environment.parse({ SLUICE_MAX_LIMITS: 'storedBytes=10737418240' }));
  expect(ceilings).toEqual({ storedBytes: 10_737_418_240 });
});

test('limits of invited accounts only contain the specified limits', () => {
  expect(readInvitedLimits(Environment.parse({}))).toEqual({});
  expect(readInvitedLimits(Environment.parse({ SLUICE_INVITED_LIMITS: 'streams=0,blocks=10000' }))).toEqual({
    streams: 0,
    blocks: 10_000,
  });
});

describe('mistakes are explained', () => {
  test.each([
    ['stream=5', 'unknown limit "stream"; did you mean streams?'],
    [
      'bananas=5',
      'unknown limit "bananas"; use one of storedBytes, eventsPerSecond, streams, packages, integrations, activations, subscriptions, blocks, requestsPerMinute, invitationMailsPerDay',
    ],
    ['streams', 'must be name=number, separated by commas, such as streams=1000,storedBytes=10737418240'],
    ['streams=1=2', 'must be name=number, separated by commas, such as streams=1000,storedBytes=10737418240'],
    ['streams=-1', 'streams must be a whole number between 0 and 100000, or unlimited, such as streams=1000'],
    [
      'storedBytes=10Gi',
      'storedBytes must be a whole number between 0 and 9007199254740991, or unlimited, such as storedBytes=1000',
    ],
    [
      'requestsPerMinute=9',
      'requestsPerMinute must be a whole number between 10 and 10000000, or unlimited, such as requestsPerMinute=1000',
    ],
    ['streams=1,streams=2', 'streams appears twice; specify each limit only once'],
  ])('%s', (text, message) => {
    expect(problemsOf({ SLUICE_FREE_LIMITS: text })).toEqual([`SLUICE_FREE_LIMITS: ${message}`]);
  });

  test('a ceiling that is unlimited', () => {
    expect(problemsOf({ SLUICE_MAX_LIMITS: 'blocks=unlimited' })).toEqual([
      'SLUICE_MAX_LIMITS: blocks must be a whole number between 0 and 10000000, such as blocks=1000',
    ]);
  });

  test('a limit of invited accounts that the admission policy would refuse', () => {
    expect(problemsOf({ SLUICE_INVITED_LIMITS: 'streams=101,blocks=1' })).toEqual([
      'SLUICE_INVITED_LIMITS: streams must not exceed 100, because the admission policy of the facade only allows limits up to the shipped defaults of the Free plan, such as streams=100',
    ]);
  });

  test('all mistakes together', () => {
    expect(problemsOf({ SLUICE_FREE_LIMITS: 'stream=5,blocks=x' })).toHaveLength(2);
  });
});

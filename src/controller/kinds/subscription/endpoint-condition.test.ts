import { describe, expect, test } from 'vitest';
import {
  type EndpointFacts,
  endpointEvents,
  endpointStatus,
  failingCondition,
  nextWarningInMs,
} from './endpoint-condition.ts';

const DAY_MS = 86_400_000;
const NOW_MS = Date.parse('2026-03-10T00:00:00Z');
const works: EndpointFacts = {
  health: undefined,
  recorded: undefined,
  recordedFailing: undefined,
  enabledMs: undefined,
  exists: true,
  nowMs: NOW_MS,
};
const failingFor = (days: number): EndpointFacts => ({
  ...works,
  health: { sinceMs: NOW_MS - days * DAY_MS, failures: 20 },
});
const gone: EndpointFacts = {
  ...works,
  health: { sinceMs: NOW_MS, failures: 1, disabled: { ms: NOW_MS - 1_234, by: 'gone' } },
};
const recordedGone = { disabledAt: '2026-03-09T23:59:58.766Z', disabledBy: 'Gone' } as const;
const olderHealth = {
  sinceMs: NOW_MS - DAY_MS,
  failures: 1,
  disabled: { ms: NOW_MS - DAY_MS, by: 'failing' },
} as const;
const failingWith = (reason: string, status: 'True' | 'False' = 'True') => ({ status, reason, message: 'm' });
const conditionsOf = (facts: EndpointFacts) =>
  failingCondition(facts).map(({ status, reason }) => `${status}/${reason}`);
const eventsOf = (facts: EndpointFacts) => endpointEvents(facts).map(({ type, reason }) => `${type} ${reason}`);

test('a working endpoint has no condition, no read, and no Event', () => {
  expect([endpointStatus(works), conditionsOf(works), eventsOf(works), nextWarningInMs(works)]).toEqual([
    undefined,
    [],
    [],
    undefined,
  ]);
});

describe('disabled', () => {
  test('is stored with its time in milliseconds, and reported once along with the solution', () => {
    expect(endpointStatus(gone)).toEqual(recordedGone);
    const [event] = endpointEvents(gone);
    expect(event).toMatchObject({ type: 'Warning', reason: 'EndpointDisabled' });
    expect(event?.message).toMatch(/410 Gone \(2026-03-09T23:59:58\.766Z\).*spec\.endpoint\.enabledAt.*\/enable/);
    expect(eventsOf({ ...gone, recorded: recordedGone })).toEqual([]);
  });

  test.each<[string, EndpointFacts]>([
    ['Redis has lost that', { ...works, recorded: recordedGone }],
    ['a new leader has not looked yet', { ...works, health: 'unknown', recorded: recordedGone }],
    ['Redis was restored from older data', { ...gone, recorded: recordedGone, health: olderHealth }],
    ['it was enabled before', { ...works, recorded: recordedGone, enabledMs: Date.parse(recordedGone.disabledAt) }],
  ])('is kept if %s', (_what, facts) => {
    expect(endpointStatus(facts)).toEqual(recordedGone);
    expect(eventsOf(facts)).toEqual([]);
  });

  test('ends if the owner enables the endpoint later, even if the data plane does not know this yet', () => {
    const enabled = { ...gone, recorded: recordedGone, enabledMs: NOW_MS };
    expect(endpointStatus(enabled)).toBeUndefined();
    expect(eventsOf(enabled)).toEqual(['Normal EndpointEnabled']);
  });

  test('starts again with a new time', () => {
    const again: EndpointFacts = { ...gone, recorded: { ...recordedGone, disabledAt: '2026-03-01T00:00:00.000Z' } };
    expect(endpointStatus(again)).toEqual(recordedGone);
    expect(eventsOf(again)).toEqual(['Warning EndpointDisabled']);
  });

  test('ends without an endpoint', () => {
    expect(endpointStatus({ ...gone, recorded: recordedGone, exists: false })).toBeUndefined();
    expect(eventsOf({ ...gone, recorded: recordedGone, exists: false })).toEqual([]);
  });
});

describe('only failures', () => {
  test.each<[EndpointFacts, string[], string[], number | undefined]>([
    [failingFor(0.9), [], [], 0.1],
    [failingFor(1), ['True/FailingOneDay'], ['Warning FailingOneDay'], 2],
    [{ ...failingFor(2), recordedFailing: failingWith('FailingOneDay') }, ['True/FailingOneDay'], [], 1],
    [
      { ...failingFor(3), recordedFailing: failingWith('FailingOneDay') },
      ['True/FailingThreeDays'],
      ['Warning FailingThreeDays'],
      1,
    ],
    [failingFor(4.5), ['True/FailingFourDays'], ['Warning FailingFourDays'], undefined],
    [
      { ...works, recordedFailing: failingWith('FailingFourDays') },
      ['False/Recovered'],
      ['Normal EndpointRecovered'],
      undefined,
    ],
    [{ ...works, recordedFailing: failingWith('Recovered', 'False') }, ['False/Recovered'], [], undefined],
    [
      { ...works, health: 'unknown', recordedFailing: failingWith('FailingOneDay') },
      ['True/FailingOneDay'],
      [],
      undefined,
    ],
    [{ ...failingFor(4), enabledMs: NOW_MS }, [], [], undefined],
    [
      { ...gone, recorded: recordedGone, recordedFailing: failingWith('FailingFourDays') },
      ['False/EndpointDisabled'],
      [],
      undefined,
    ],
  ])('%#', (facts, condition, events, days) => {
    expect(conditionsOf(facts)).toEqual(condition);
    expect(eventsOf(facts)).toEqual(events);
    const inMs = nextWarningInMs(facts);
    expect(inMs === undefined ? undefined : inMs / DAY_MS).toEqual(
      days === undefined ? undefined : expect.closeTo(days),
    );
  });

  test('contain their start, and when the endpoint will be disabled', () => {
    const [condition] = failingCondition(failingFor(3));
    expect(condition?.message).toContain('since 2026-03-07T00:00:00Z');
    expect(condition?.message).toContain('disabled at 2026-03-12T00:00:00Z');
  });
});

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
const saidGone = { disabledAt: '2026-03-09T23:59:58.766Z', disabledBy: 'Gone' } as const;
const saidFailing = (reason: string, status: 'True' | 'False' = 'True') => ({ status, reason, message: 'm' });
const said = (facts: EndpointFacts) => failingCondition(facts).map(({ status, reason }) => `${status}/${reason}`);
const told = (facts: EndpointFacts) => endpointEvents(facts).map(({ type, reason }) => `${type} ${reason}`);

test('a working endpoint has no condition, no read, and no Event', () => {
  expect([endpointStatus(works), said(works), told(works), nextWarningInMs(works)]).toEqual([
    undefined,
    [],
    [],
    undefined,
  ]);
});

describe('disabled', () => {
  test('is stored with its time in milliseconds, and reported once along with the solution', () => {
    expect(endpointStatus(gone)).toEqual(saidGone);
    const [event] = endpointEvents(gone);
    expect(event).toMatchObject({ type: 'Warning', reason: 'EndpointDisabled' });
    expect(event?.message).toMatch(/410 Gone \(2026-03-09T23:59:58\.766Z\).*spec\.endpoint\.enabledAt.*\/enable/);
    expect(told({ ...gone, recorded: saidGone })).toEqual([]);
  });

  test.each<[string, EndpointFacts]>([
    ['Redis has lost that', { ...works, recorded: saidGone }],
    ['a new leader has not looked yet', { ...works, health: 'unknown', recorded: saidGone }],
    ['it was enabled before', { ...works, recorded: saidGone, enabledMs: Date.parse(saidGone.disabledAt) }],
  ])('is kept if %s', (_what, facts) => {
    expect(endpointStatus(facts)).toEqual(saidGone);
    expect(told(facts)).toEqual([]);
  });

  test('ends if the owner enables the endpoint later, even if the data plane does not know this yet', () => {
    const enabled = { ...gone, recorded: saidGone, enabledMs: NOW_MS };
    expect(endpointStatus(enabled)).toBeUndefined();
    expect(told(enabled)).toEqual(['Normal EndpointEnabled']);
  });

  test('starts again with a new time', () => {
    const again: EndpointFacts = { ...gone, recorded: { ...saidGone, disabledAt: '2026-03-01T00:00:00.000Z' } };
    expect(endpointStatus(again)).toEqual(saidGone);
    expect(told(again)).toEqual(['Warning EndpointDisabled']);
  });

  test('ends without an endpoint', () => {
    expect(endpointStatus({ ...gone, recorded: saidGone, exists: false })).toBeUndefined();
    expect(told({ ...gone, recorded: saidGone, exists: false })).toEqual([]);
  });
});

describe('only failures', () => {
  test.each<[EndpointFacts, string[], string[], number | undefined]>([
    [failingFor(0.9), [], [], 0.1],
    [failingFor(1), ['True/FailingOneDay'], ['Warning FailingOneDay'], 2],
    [{ ...failingFor(2), recordedFailing: saidFailing('FailingOneDay') }, ['True/FailingOneDay'], [], 1],
    [
      { ...failingFor(3), recordedFailing: saidFailing('FailingOneDay') },
      ['True/FailingThreeDays'],
      ['Warning FailingThreeDays'],
      1,
    ],
    [failingFor(4.5), ['True/FailingFourDays'], ['Warning FailingFourDays'], undefined],
    [
      { ...works, recordedFailing: saidFailing('FailingFourDays') },
      ['False/Recovered'],
      ['Normal EndpointRecovered'],
      undefined,
    ],
    [{ ...works, recordedFailing: saidFailing('Recovered', 'False') }, ['False/Recovered'], [], undefined],
    [
      { ...works, health: 'unknown', recordedFailing: saidFailing('FailingOneDay') },
      ['True/FailingOneDay'],
      [],
      undefined,
    ],
    [{ ...failingFor(4), enabledMs: NOW_MS }, [], [], undefined],
    [
      { ...gone, recorded: saidGone, recordedFailing: saidFailing('FailingFourDays') },
      ['False/EndpointDisabled'],
      [],
      undefined,
    ],
  ])('%#', (facts, condition, events, days) => {
    expect(said(facts)).toEqual(condition);
    expect(told(facts)).toEqual(events);
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

import { describe, expect, it } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { errorFromStatus } from '../../kube/kube-error.ts';
import type { ObjectName } from '../../kube/object.ts';
import type { Resource } from '../../kube/resource.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createEventRecorder } from './event-recorder.ts';

const STREAMS: Resource = { group: 'x', version: 'v1', kind: 'Stream', plural: 'streams', namespaced: true };
const stream = (name: string, namespace = 'ns') => ({
  resource: STREAMS,
  metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: '7' },
});
const note = (message: string) => ({ type: 'Normal' as const, reason: 'Drained', message });

function createRecorder(failWith?: () => unknown, gate?: Promise<void>) {
  const clock = createManualClock();
  const sent: [string, ObjectName, Record<string, unknown>][] = [];
  const send = (verb: string) => async (_resource: Resource, name: ObjectName, body: object) => {
    await gate;
    const failure = failWith?.();
    if (failure !== undefined) throw failure;
    sent.push([verb, name, body as Record<string, unknown>]);
    return {} as never;
  };
  const dropped: string[] = [];
  const recorder = createEventRecorder({
    client: { create: send('create'), mergePatch: send('patch') },
    clock,
    log: createLogger({ level: 'silent' }),
    metrics: { dropped: reason => dropped.push(reason) },
    component: 'sluice-controller',
    instance: 'pod-1',
  });
  return { clock, sent, recorder, dropped };
}

describe('event recorder', () => {
  it('references the object in the way kubectl describe requires', async () => {
    const { sent, recorder } = createRecorder();
    recorder.record(stream('a'), note('empty'));
    await recorder.flush();
    expect(sent).toMatchObject([
      [
        'create',
        { namespace: 'ns', name: expect.stringMatching(/^a\.[0-9a-f]+$/) },
        {
          involvedObject: { apiVersion: 'x/v1', kind: 'Stream', namespace: 'ns', name: 'a', uid: 'uid-a' },
          type: 'Normal',
          reason: 'Drained',
          message: 'empty',
          count: 1,
          firstTimestamp: '2026-01-01T00:00:00Z',
          source: { component: 'sluice-controller' },
          reportingInstance: 'pod-1',
        },
      ],
    ]);
  });

  it('counts equal Events within ten minutes, and creates a new Event afterwards', async () => {
    const { clock, sent, recorder } = createRecorder();
    for (let i = 0; i < 3; i++) recorder.record(stream('a'), note('empty'));
    recorder.record(stream('a'), note('other'));
    await recorder.flush();
    await clock.advance(600_000);
    recorder.record(stream('a'), note('empty'));
    await recorder.flush();
    expect(sent.map(([verb, , body]) => `${verb} ${body.count}`)).toEqual([
      'create 1',
      'patch 2',
      'patch 3',
      'create 1',
      'create 1',
    ]);
    expect(sent[1]?.[1]).toEqual(sent[0]?.[1]);
  });

  it('allows 25 Events for an object, and then one every five minutes', async () => {
    const { clock, sent, recorder } = createRecorder();
    for (let i = 0; i < 40; i++) recorder.record(stream('a'), note(`${i}`));
    recorder.record(stream('b'), note('of another object'));
    await recorder.flush();
    expect(sent).toHaveLength(26);
    await clock.advance(300_000);
    recorder.record(stream('a'), note('x'));
    recorder.record(stream('a'), note('y'));
    await recorder.flush();
    expect(sent).toHaveLength(27);
  });

  it('allows 500 Events for the objects of a workspace, and then 50 per second', async () => {
    const { clock, sent, recorder, dropped } = createRecorder();
    for (let i = 0; i < 600; i++) recorder.record(stream(`s${i}`), note('empty'));
    await recorder.flush();
    expect(sent).toHaveLength(500);
    expect(dropped).toEqual(Array.from({ length: 100 }, () => 'workspace_limit'));
    await clock.advance(1_000);
    for (let i = 0; i < 60; i++) recorder.record(stream(`t${i}`), note('empty'));
    await recorder.flush();
    expect(sent).toHaveLength(550);
    // The bucket never exceeds the burst, and an object that has used up its own Events does not affect other objects.
    await clock.advance(60_000);
    for (let i = 0; i < 100; i++) recorder.record(stream('loud'), note(`${i}`));
    for (let i = 0; i < 480; i++) recorder.record(stream(`u${i}`), note('empty'));
    await recorder.flush();
    expect(sent).toHaveLength(550 + 25 + 475);
  });

  it('does not drop Events of a workspace because another workspace has too many', async () => {
    const { clock, sent, recorder } = createRecorder();
    const sentOf = (namespace: string) => sent.filter(([, name]) => name.namespace === namespace).length;
    for (let second = 0; second < 60; second++) {
      for (let i = 0; i < 600; i++) recorder.record(stream(`${second}-${i}`, 'loud'), note('empty'));
      for (let i = 0; i < 5; i++) recorder.record(stream(`q${second}-${i}`, 'quiet'), note('empty'));
      await recorder.flush();
      await clock.advance(1_000);
    }
    expect(sentOf('quiet')).toBe(300);
    // The remaining Events: a burst of 500, followed by 50 per second, 5 of which are required by the other workspace.
    expect(sentOf('loud')).toBeGreaterThan(500 + 59 * 40);
    expect(sentOf('loud')).toBeLessThanOrEqual(500 + 59 * 50);
  });

  it('shares the Events between workspaces, and never exceeds the total limit', async () => {
    const { clock, sent, recorder, dropped } = createRecorder();
    const namespaces = Array.from({ length: 40 }, (_, i) => `ns-${i}`);
    for (let second = 0; second <= 100; second++) {
      for (let i = 0; i < 30; i++) {
        for (const each of namespaces) recorder.record(stream(`${each}-${second}-${i}`, each), note('empty'));
      }
      await recorder.flush();
      await clock.advance(1_000);
    }
    expect(sent.length).toBeLessThanOrEqual(1_000 + 100 * 50);
    const counts = namespaces.map(namespace => sent.filter(([, name]) => name.namespace === namespace).length);
    expect(Math.max(...counts)).toBeLessThan(2 * Math.min(...counts));
    expect(new Set(dropped)).toEqual(new Set(['workspace_limit']));
  });

  it('counts dropped Events by reason', async () => {
    let failure: Error | undefined = new Error('no connection');
    const { recorder, dropped } = createRecorder(() => failure);
    recorder.record(stream('a'), note('lost'));
    await recorder.flush();
    failure = undefined;
    for (let i = 0; i < 25; i++) recorder.record(stream('a'), note(`${i}`));
    await recorder.flush();
    expect(dropped).toEqual(['rejected', 'object_limit']);
  });

  it('drops Events that cannot be stored until they are sent', async () => {
    const gate = Promise.withResolvers<void>();
    const { clock, recorder, dropped } = createRecorder(undefined, gate.promise);
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 400; i++) recorder.record(stream(`s${round}-${i}`), note('empty'));
      await clock.advance(10_000);
    }
    expect(dropped).toEqual(Array.from({ length: 200 }, () => 'queue_full'));
    gate.resolve();
    await recorder.flush();
  });

  it('shows when something happened, and not when the API server has accepted the Event', async () => {
    const gate = Promise.withResolvers<void>();
    const { clock, sent, recorder } = createRecorder(undefined, gate.promise);
    recorder.record(stream('a'), note('empty'));
    await clock.advance(60_000);
    recorder.record(stream('a'), note('empty'));
    await clock.advance(60_000);
    gate.resolve();
    await recorder.flush();
    expect(sent.map(([, , { lastTimestamp }]) => lastTimestamp)).toEqual([
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:01:00Z',
    ]);
  });

  it('never throws, and creates an Event again if the server has removed it', async () => {
    let failure: unknown;
    const { sent, recorder } = createRecorder(() => {
      const now = failure;
      failure = undefined;
      return now;
    });
    failure = new Error('no connection');
    recorder.record(stream('a'), note('lost'));
    await recorder.flush();
    recorder.record(stream('a'), note('empty'));
    await recorder.flush();
    failure = errorFromStatus('PATCH', 404, undefined);
    recorder.record(stream('a'), note('empty'));
    await recorder.flush();
    expect(sent.map(([verb]) => verb)).toEqual(['create', 'create']);
  });

  it('writes Events of cluster-scoped kinds to the namespace default', async () => {
    const { sent, recorder } = createRecorder();
    const { namespace: _, ...metadata } = stream('a').metadata;
    recorder.record({ resource: STREAMS, metadata }, note('x'));
    await recorder.flush();
    expect(sent[0]?.[1].namespace).toBe('default');
  });
});

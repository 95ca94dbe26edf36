import { describe, expect, it } from 'vitest';
import { KubeError } from '../../kube/kube-error.ts';
import type { Condition } from './conditions.ts';
import { FAILURES_BEFORE_REPORT, FAILURES_BEFORE_UNREADY, reportFailure } from './failure.ts';
import { OutageError, ReconcileError } from './outcome.ts';

const condition = (type: string, status: Condition['status'], observedGeneration = 1): Condition => ({
  type,
  status,
  reason: 'Because',
  message: 'm',
  observedGeneration,
  lastTransitionTime: '2026-01-01T00:00:00Z',
});

describe('failure', () => {
  it('does not change a Ready object at first', () => {
    const object = { generation: 1, conditions: [condition('Ready', 'True')] };
    expect(reportFailure(new Error('x'), object, 0)).toBeUndefined();
    expect(reportFailure(new Error('x'), object, FAILURES_BEFORE_UNREADY - 2)).toBeUndefined();
    expect(reportFailure(new Error('x'), object, FAILURES_BEFORE_UNREADY - 1)).toBeDefined();
  });

  it.each<[string, Condition[], boolean]>([
    ['was not applied yet', [condition('Ready', 'True', 1)], true],
    ['was never judged', [], true],
    ['is Ready', [condition('Ready', 'True', 2)], false],
    ['waits for a reference', [condition('Ready', 'Unknown', 2), condition('Reconciling', 'True', 2)], false],
    [
      'failed before',
      [condition('Ready', 'False', 2), { ...condition('Reconciling', 'True', 2), reason: 'Retrying' }],
      true,
    ],
    ['was kept back by a pause', [{ ...condition('Ready', 'Unknown', 2), reason: 'WorkspacePaused' }], true],
  ])('of Redis is written on a generation that %s, however long it takes: %#', (_name, conditions, written) => {
    const outage = new OutageError('RedisUnavailable', 'Redis does not answer');
    expect(reportFailure(outage, { generation: 2, conditions }, 1_000) !== undefined).toBe(written);
  });

  it('is reported immediately for a generation that was not Ready yet, and keeps the message of the older generation', () => {
    const object = { generation: 2, conditions: [condition('Ready', 'True'), condition('Live', 'True')] };
    const report = reportFailure(new ReconcileError('RedisUnavailable', 'Redis does not answer'), object, 0);
    expect(report?.conditions).toMatchObject([
      { type: 'Ready', status: 'False', reason: 'RedisUnavailable', message: 'Redis does not answer' },
      { type: 'Reconciling', status: 'True', reason: 'Retrying' },
      { type: 'Live', status: 'True', observedGeneration: 1 },
    ]);
  });

  it.each([
    ['Redis does not answer', new OutageError('RedisUnavailable', 'Redis does not answer')],
    ['the API server does not answer', new KubeError({ call: 'PATCH /x', status: 0, reason: 'Timeout' })],
    [
      'the API server has too many requests',
      new KubeError({ call: 'PATCH /x', status: 429, reason: 'TooManyRequests' }),
    ],
    ['the API server cannot reach etcd', new KubeError({ call: 'PATCH /x', status: 504, reason: 'Timeout' })],
  ])('is reported after the third failure if %s', (_name, error) => {
    const object = { generation: 1, conditions: [] };
    expect(reportFailure(error, object, FAILURES_BEFORE_REPORT - 2)).toBeUndefined();
    expect(reportFailure(error, object, FAILURES_BEFORE_REPORT - 1)).toBeDefined();
  });

  it('is reported immediately if the API server rejects the object', () => {
    const error = new KubeError({ call: 'PATCH /x', status: 422, reason: 'Invalid' });
    expect(reportFailure(error, { generation: 1, conditions: [] }, 0)).toBeDefined();
  });

  it('does not show messages that were not written for users', () => {
    const report = reportFailure(new Error('550 no mailbox ada@example.com'), { generation: 1, conditions: [] }, 0);
    expect(JSON.stringify(report)).not.toContain('ada@');
  });
});

import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import { planDraining, planStream } from './plan.ts';

describe('stream', () => {
  const facts = { namespace: 'acme', name: 'orders', published: true, workspaceExists: true };
  test('is published, deprecated, waiting, or draining', () => {
    expect(listConditions(planStream(facts))).toEqual(['Ready=True/QueueReady', 'Published=True/Published']);
    expect(listConditions(planStream({ ...facts, published: false }))).toEqual([
      'Ready=True/QueueReady',
      'Published=False/Deprecated',
    ]);
    expect(listConditions(planStream({ ...facts, workspaceExists: false }))).toEqual([
      'Ready=Unknown/WaitingForWorkspace',
      'Reconciling=True/Progressing',
      'Published=Unknown/WaitingForWorkspace',
    ]);
    expect(listConditions(planDraining(facts, { unrouted: 1, open: 2 }, 0)).slice(0, 2)).toEqual([
      'Ready=False/Draining',
      'Reconciling=True/Draining',
    ]);
  });
  test.each([
    [
      'acme',
      'no Workspace owns namespace acme. Create Workspace acme, or check its Ready condition if it exists, or move the object to the namespace of a workspace',
    ],
    ['default', 'namespace default cannot be a workspace. If -n <workspace> is missing, add it'],
    ['kube-system', 'namespace kube-system cannot be a workspace. If -n <workspace> is missing, add it'],
    ['sluice-system', 'namespace sluice-system cannot be a workspace. If -n <workspace> is missing, add it'],
  ])('explains what to change in a namespace %s without a workspace', (namespace, message) => {
    const { conditions } = planStream({ ...facts, namespace, workspaceExists: false });
    expect(conditions.map(condition => condition.message)).toEqual([message, message, message]);
  });
  test.each([true, false])('is always Public, whether it is published (%s) or not', published => {
    expect(planStream({ ...facts, published }).status?.queueVisibility).toBe('Public');
  });
  test.each([
    [0, 2_000],
    [3_000, 3_000],
    [45_000, 45_000],
    [86_400_000, 60_000],
  ])('after draining for %d ms, is checked again after %d ms', (drainingForMs, waitingMs) => {
    expect(planDraining(facts, { unrouted: 1, open: 2 }, drainingForMs).waitingMs).toBe(waitingMs);
  });
  test('keeps its message while draining until the number of events changes by an order of magnitude', () => {
    const conditionsOf = (open: number) => planDraining(facts, { unrouted: 0, open }, 0).conditions;
    expect(conditionsOf(99)).toEqual(conditionsOf(10));
    expect(conditionsOf(9)).not.toEqual(conditionsOf(10));
    expect(conditionsOf(99)[0]?.message).toContain('remaining events: 10+ in inboxes and 0 to route');
  });
  test('is not published while draining', () => {
    const { conditions } = planDraining({ ...facts, published: true }, { unrouted: 1, open: 2 }, 0);
    const published = conditions.find(({ type }) => type === 'Published');
    expect(published).toMatchObject({ status: 'False', reason: 'Deprecated' });
    expect(published?.message).toContain('is being deleted');
  });
  test('contains the path for events', () => {
    expect(planStream(facts).status?.ingressPath).toBe(`/events/${planStream(facts).status?.tenantPublicId}/orders`);
  });
});

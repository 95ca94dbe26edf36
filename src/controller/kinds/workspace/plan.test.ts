import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import type { Condition } from '../../engine/conditions.ts';
import { planWorkspace } from './plan.ts';

describe('workspace', () => {
  const spent: Condition = {
    type: 'InsufficientTokens',
    status: 'True',
    reason: 'TokensSpent',
    message: 'spent',
    observedGeneration: 1,
    lastTransitionTime: '2026-01-02T03:04:05Z',
  };
  const facts = {
    name: 'acme',
    namespace: 'adopted',
    accountExists: true,
    account: 'acme',
    pauseValue: undefined,
    producer: false,
    short: undefined,
    insufficientTokens: undefined,
    wasReady: false,
    dataPlaneAway: false,
    dataPlaneReachable: undefined,
  } as const;
  test.each([
    [true, ['Warning WaitingForAccount']],
    [false, []],
  ])(
    'with a missing account records an Event if it was Ready (%s) because the account was deleted',
    (wasReady, expected) => {
      const { events = [] } = planWorkspace({ ...facts, accountExists: false, wasReady });
      expect(events.map(({ type, reason }) => `${type} ${reason}`)).toEqual(expected);
    },
  );

  test.each([
    [
      undefined,
      'account main does not exist. Create the account. If spec.account is wrong, delete the Workspace and create it again',
    ],
    [
      'blue',
      'account main does not exist in the installation blue. Create the account with spec.instance: blue. If spec.account is wrong, delete the Workspace and create it again',
    ],
  ])('with a missing account says which one to create (installation %s)', (instance, expected) => {
    const { conditions } = planWorkspace({
      ...facts,
      account: 'main',
      accountExists: false,
      ...(instance && { instance }),
    });
    expect(conditions[0]?.message).toBe(expected);
  });

  test('checks a namespace again that does not belong to it, because its deletion is not seen without a label', () => {
    expect(planWorkspace({ ...facts, namespace: 'foreign' }).requeueAfterMs).toBe(60_000);
    expect(planWorkspace({ ...facts, namespace: 'terminating' }).requeueAfterMs).toBe(5_000);
  });

  test('only shows a namespace in its status that belongs to it', () => {
    expect(planWorkspace(facts).status).toMatchObject({ namespace: 'acme' });
    expect(planWorkspace({ ...facts, namespace: 'foreign' }).status).toMatchObject({ namespace: undefined });
  });

  test.each([
    [{}, 'have the label of this workspace. Add the sluice.dev/workspace=acme label, or choose another name'],
    [
      { namespaceInstance: 'blue' },
      'have the label of this workspace. Add the sluice.dev/workspace=acme label and remove the sluice.dev/instance label of another installation, or choose another name',
    ],
    [
      { instance: 'blue' },
      'have the labels of this workspace. Add the labels sluice.dev/workspace=acme and sluice.dev/instance=blue, or choose another name',
    ],
  ])('lists the required labels of a namespace: %j', (change, expected) => {
    const { conditions } = planWorkspace({ ...facts, namespace: 'foreign', ...change });
    expect(conditions[0]?.message).toBe(`namespace acme exists but does not ${expected}`);
  });

  test.each([
    [{}, ['Ready=True/NamespaceReady']],
    [{ namespace: 'foreign' }, ['Ready=False/NamespaceNotAdopted', 'Stalled=True/NamespaceNotAdopted']],
    [{ namespace: 'terminating' }, ['Ready=Unknown/NamespaceTerminating', 'Reconciling=True/Progressing']],
    [{ accountExists: false }, ['Ready=Unknown/WaitingForAccount', 'Reconciling=True/Progressing']],
    [{ pauseValue: 'false' }, ['Ready=True/NamespaceReady']],
    [{ pauseValue: 'yes' }, ['Ready=True/PauseIgnored']],
    [{ short: false }, ['Ready=True/NamespaceReady']],
    [{ short: true }, ['Ready=True/NamespaceReady', 'InsufficientTokens=True/TokensSpent']],
    [{ short: false, insufficientTokens: spent }, ['Ready=True/NamespaceReady', 'InsufficientTokens=False/TokensLeft']],
    [{ dataPlaneAway: true }, ['Ready=True/NamespaceReady', 'DataPlaneReachable=False/RedisUnavailable']],
    [
      { dataPlaneReachable: { ...spent, type: 'DataPlaneReachable' } },
      ['Ready=True/NamespaceReady', 'DataPlaneReachable=True/RedisAnswers'],
    ],
    // This has not been checked yet, so the previous value is kept.
    [{ insufficientTokens: spent }, ['Ready=True/NamespaceReady', 'InsufficientTokens=True/TokensSpent']],
  ] as const)('%j', (change, expected) => {
    expect(listConditions(planWorkspace({ ...facts, ...change }))).toEqual(expected);
  });
});

import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { KubeError } from '../../../kube/kube-error.ts';
import type { Cached } from '../../caches/caches.ts';
import { finalizeSubscription, reconcileSubscription } from './reconcile.ts';

const paused = objectOf<'Workspace'>(
  'acme',
  { account: 'acme' },
  { namespace: undefined, metadata: { annotations: { 'sluice.dev/paused': 'true' } } },
);
const grantTo = (workspace: string, more: object = {}) => objectOf<'Integration'>('globex', { workspace, ...more });
const live = { type: 'Live', status: 'True', reason: 'Live', message: 'm', observedGeneration: 1 };
const ready = { ...live, type: 'Ready', reason: 'Admitted' };
const subscription = (generation: number, conditions: readonly object[]): Cached<'Subscription'> =>
  objectOf<'Subscription'>(
    'acme-orders',
    { producer: 'acme', integration: 'globex', stream: 'orders', ordering: 'ByGroupKey', deletionPolicy: 'Retain' },
    { namespace: 'globex', metadata: { generation }, status: { admittedAt: '2026-01-01T00:00:00Z', conditions } },
  );

describe('a subscription to a paused workspace', () => {
  async function reasonsOf(
    integrations: readonly Cached<'Integration'>[],
    object: Cached<'Subscription'>,
    closure?: 'Blocked',
  ) {
    const caches = { Workspace: [paused], Integration: integrations };
    const { context, inForce } = createTestContext(caches, closure === undefined ? {} : { closure });
    const outcome = await reconcileSubscription(context)(object);
    expect(inForce).toEqual([]);
    expect(outcome.status?.admittedAt).toBe('2026-01-01T00:00:00Z');
    return outcome.conditions.map(({ type, status, reason }) => `${type}=${status}/${reason}`);
  }

  test('only shows the pause to a partner with a grant, and only before it is applied', async () => {
    const expected = ['Ready=Unknown/WorkspacePaused', 'Live=True/Live'];
    expect(await reasonsOf([grantTo('globex')], subscription(2, [ready, live]))).toEqual(expected);
    expect(await reasonsOf([grantTo('globex')], subscription(1, [ready, live]))).toEqual([
      'Ready=True/Admitted',
      'Live=True/Live',
    ]);
  });

  test('is shown as blocked, and keeps all other conditions', async () => {
    expect(await reasonsOf([grantTo('globex')], subscription(1, [ready, live]), 'Blocked')).toEqual([
      'Ready=True/Admitted',
      'Live=False/Blocked',
    ]);
  });

  test.each<[string, Cached<'Integration'>[]]>([
    ['nobody', []],
    ['somebody else', [grantTo('initech')]],
    ['a partner that declined', [grantTo('globex', { declined: true })]],
    ['a partner that lost it', [grantTo('globex', { revoked: true })]],
  ])('does not show anything about the workspace to %s', async (_who, integrations) => {
    for (const generation of [1, 2]) {
      const [first, , second] = await reasonsOf(integrations, subscription(generation, [ready, live]));
      expect([first, second]).toEqual(['Ready=Unknown/WaitingForGrant', 'Live=False/NotAdmitted']);
    }
  });
});

describe('the deletion of a subscription', () => {
  const inForceFails = (error: Error, more: { readonly knows?: boolean } = {}) => {
    const test = createTestContext({}, { deletingForMs: 60_000 });
    const dropped: string[] = [];
    const tenants = {
      ...test.context.tenants,
      inForce: () => Promise.reject(error),
      remove: async (name: string) => void dropped.push(name),
    };
    const secretAccess = { ...test.context.secretAccess, knows: () => more.knows ?? true };
    return {
      ...test,
      context: { ...test.context, tenants, secretAccess, explain: (e: unknown) => e } as never,
      dropped,
    };
  };
  const deleted = subscription(1, [ready, live]);

  test('closes its routes and removes its data even if the Secrets of the producer cannot be read', async () => {
    const { context, inForce, dropped, forceRemoved } = inForceFails(new Error('forbidden'), { knows: false });
    expect(await finalizeSubscription(context)(deleted)).toBe('done');
    expect([inForce, dropped, forceRemoved]).toEqual([['acme acme-orders, closed'], ['acme'], []]);
  });

  test('waits for Redis for one minute, but does not blame Redis for a failure of the API server', async () => {
    const redis = inForceFails(new Error('Redis is unavailable'));
    expect(await finalizeSubscription(redis.context)(deleted)).toBe('done');
    expect(redis.forceRemoved).toEqual(['acme-orders undefined']);
    const api = inForceFails(new KubeError({ call: 'GET secrets', status: 500, reason: 'InternalError' }));
    await expect(finalizeSubscription(api.context)(deleted)).rejects.toThrow('500 InternalError');
    expect(api.forceRemoved).toEqual([]);
  });
});

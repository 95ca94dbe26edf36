import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Cached } from '../../caches/caches.ts';
import { planBlock } from './plan.ts';
import { reconcileBlock } from './reconcile.ts';

const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
const integration = objectOf<'Integration'>('globex', { workspace: 'globex' });
const pkg = (metadata: object = {}) => objectOf<'Package'>('sales', { streams: ['orders'] }, { metadata });
const target: Cached<'Block'>['spec']['target'] = { kind: 'Package', name: 'sales' };
const block = objectOf<'Block'>('b', { integration: 'globex', target, onUnblock: 'Continue' });

describe('a block', () => {
  const facts = {
    namespace: 'acme',
    integration: 'globex',
    target,
    workspaceExists: true,
    integrationExists: true,
    targetExists: true,
    pausedSubscriptions: 2,
  };
  test.each<[Partial<typeof facts>, string[]]>([
    [{}, ['Ready=True/Applied', 'Enforced=True/Enforced']],
    [
      { integrationExists: false },
      ['Ready=Unknown/WaitingForIntegration', 'Reconciling=True/Progressing', 'Enforced=Unknown/WaitingForIntegration'],
    ],
    [
      { targetExists: false },
      ['Ready=Unknown/WaitingForTarget', 'Reconciling=True/Progressing', 'Enforced=Unknown/WaitingForTarget'],
    ],
    [
      { integrationExists: false, targetExists: false },
      ['Ready=Unknown/WaitingForIntegration', 'Reconciling=True/Progressing', 'Enforced=Unknown/WaitingForIntegration'],
    ],
    [{ workspaceExists: false }, ['Ready=Unknown/WaitingForWorkspace', 'Reconciling=True/Progressing']],
  ])('%j', (change, expected) => {
    const outcome = planBlock({ ...facts, ...change });
    expect(listConditions(outcome)).toEqual(expected);
    expect(outcome.status).toMatchObject({ pausedSubscriptions: 2, publicId: expect.stringMatching(/^blk_/) });
  });

  test.each([
    [{ integrationExists: false }, 'integration globex does not exist in namespace acme yet', 'spec.integration'],
    [{ targetExists: false }, 'Package sales does not exist in namespace acme yet', 'spec.target'],
  ])('the message for %j names what may be wrong, and says that nothing is blocked', (change, words, field) => {
    const { message } = planBlock({ ...facts, ...change }).conditions[0] ?? {};
    expect(message).toContain(`${words}. Until it does, nothing is blocked`);
    expect(message).toContain(`check ${field} and the namespace`);
  });

  test('is enforced when it is applied together with its target, and reports the number of paused subscriptions', async () => {
    const { context, inForce } = createTestContext(
      { Workspace: [workspace], Integration: [integration], Package: [pkg()] },
      { paused: new Map([['uid-b', 3]]) },
    );
    const outcome = await reconcileBlock(context)(block);
    expect(inForce).toEqual(['acme b', 'acme globex', 'acme sales']);
    expect(outcome.conditions.at(-1)).toMatchObject({ type: 'Enforced', status: 'True' });
    expect(outcome.status?.pausedSubscriptions).toBe(3);
  });

  test('is applied even if its target does not exist', async () => {
    const { context, inForce } = createTestContext({ Workspace: [workspace] });
    expect(listConditions(await reconcileBlock(context)(block)).at(-1)).toBe('Enforced=Unknown/WaitingForIntegration');
    expect(inForce).toEqual(['acme b']);
  });

  test('is not enforced before its package is protected because the package could be deleted', async () => {
    const { context } = createTestContext({
      Workspace: [workspace],
      Integration: [integration],
      Package: [pkg({ finalizers: [] })],
    });
    await expect(reconcileBlock(context)(block)).rejects.toMatchObject({ reason: 'CacheBehind' });
  });
});

test('a block is enforced even if the Secrets of its workspace cannot be read', async () => {
  const finalized = pkg({ finalizers: ['sluice.dev/finalizer'] });
  const objects = { Workspace: [workspace], Integration: [integration], Package: [finalized], Block: [block] };
  const { context, inForce } = createTestContext(objects);
  const secretAccess = { ...context.secretAccess, knows: () => false };
  const outcome = await reconcileBlock({ ...context, secretAccess })(block);
  expect(listConditions(outcome)).toEqual(['Ready=True/Applied', 'Enforced=True/Enforced']);
  expect(inForce).toEqual(['acme b, closed', 'acme globex, closed', 'acme sales, closed']);
});

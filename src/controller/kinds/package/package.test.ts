import { describe, expect, test } from 'vitest';
import { listConditions } from '../../../../test/support/controller/list-conditions.ts';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Cached } from '../../caches/caches.ts';
import { planPackage } from './plan.ts';
import { finalizePackage, reconcilePackage } from './reconcile.ts';

const workspace = objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined });
const stream = (name: string) =>
  objectOf<'CatalogStream'>(name, { public: true, retention: '1h', deletionPolicy: 'Retain' });
const pkg = (spec: Cached<'Package'>['spec']) => objectOf<'Package'>('sales', spec);
const blockOf = (
  name: string,
  target: Cached<'Block'>['spec']['target'] = { kind: 'Package', name: 'sales' },
  metadata: object = {},
) => objectOf<'Block'>(name, { integration: 'globex', target, onUnblock: 'Continue' }, { metadata });

describe('a package', () => {
  test('is ready when its routes are applied, and counts each stream once', async () => {
    const { context, inForce } = createTestContext({ Workspace: [workspace], CatalogStream: [stream('orders')] });
    const outcome = await reconcilePackage(context)(pkg({ streams: ['orders', 'orders'] }));
    expect(inForce).toEqual(['acme sales']);
    expect(listConditions(outcome)).toEqual(['Ready=True/Compiled', 'StreamsResolved=True/AllFound']);
    expect(outcome.status).toMatchObject({ streamCount: 1, publicId: expect.stringMatching(/^pkg_/) });
  });

  test('lists at most ten missing streams in alphabetical order', () => {
    const streams = Array.from({ length: 12 }, (_, i) => `s${String(11 - i).padStart(2, '0')}`);
    const facts = { namespace: 'acme', name: 'sales', streams: [...streams, 's03'], workspaceExists: true };
    const { conditions } = planPackage({ ...facts, streamExists: () => false });
    expect(conditions.at(-1)).toMatchObject({ status: 'False', reason: 'StreamsMissing' });
    expect(conditions.at(-1)?.message).toContain('s00, s01, s02, s03, s04, s05, s06, s07, s08, s09 and 2 more');
    const one = planPackage({ ...facts, streamExists: name => name !== 's03' });
    expect(one.conditions.at(-1)?.message).toMatch(/Check the names in spec\.streams.*: s03$/);
  });

  test('waits for a workspace without calling Redis', async () => {
    const { context, inForce } = createTestContext({});
    expect(listConditions(await reconcilePackage(context)(pkg({})))).toEqual([
      'Ready=Unknown/WaitingForWorkspace',
      'Reconciling=True/Progressing',
      'StreamsResolved=True/AllFound',
    ]);
    expect(inForce).toEqual([]);
  });

  test('is kept while a Block refers to it, and lists the Blocks', async () => {
    const { context } = createTestContext({ Workspace: [workspace], Block: [blockOf('b2'), blockOf('b1')] });
    const answer = await finalizePackage(context)(pkg({}));
    expect(answer).toMatchObject({ waitingMs: expect.any(Number), events: [{ reason: 'StillBlocking' }] });
    if (answer === 'done') throw new Error('the finalizer was removed');
    expect(listConditions(answer).slice(0, 2)).toEqual(['Ready=False/StillBlocking', 'Reconciling=True/Progressing']);
    expect(answer.conditions[0]?.message).toMatch(/: b1, b2$/);
  });

  test('is removed if no Block refers to it', async () => {
    const { context, asked } = createTestContext({
      Workspace: [workspace],
      Block: [
        blockOf('deleting', undefined, { deletionTimestamp: '2026-01-01T00:00:00Z' }),
        blockOf('of-a-stream', { kind: 'CatalogStream', name: 'sales' }),
        blockOf('of-another', { kind: 'Package', name: 'other' }),
        blockOf('elsewhere', undefined, { namespace: 'initech' }),
      ],
    });
    expect(await finalizePackage(context)(pkg({}))).toBe('done');
    expect(asked).toEqual([]);
  });

  test('is removed with its namespace, even if there are references', async () => {
    const { context, asked } = createTestContext({ Block: [blockOf('b1')] }, { namespaceDeleting: true });
    expect(await finalizePackage(context)(pkg({}))).toBe('done');
    expect(asked).toEqual(['acme']);
  });
});

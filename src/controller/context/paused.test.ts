import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../test/support/controller/test-context.ts';
import type { Cached } from '../caches/caches.ts';
import { finalizeUnlessPaused, isPaused, PAUSABLE, planPaused, unlessPaused } from './paused.ts';

const workspaceOf = (annotations: Record<string, string>, metadata: object = {}) =>
  objectOf<'Workspace'>('acme', { account: 'acme' }, { namespace: undefined, metadata: { annotations, ...metadata } });
const paused = workspaceOf({ 'sluice.dev/paused': 'true' });
const attempt = {} as never;
const at = { lastTransitionTime: '2026-01-01T00:00:00Z' };
const ready = (observedGeneration: number) =>
  ({ type: 'Ready', status: 'True', reason: 'Compiled', message: 'm', observedGeneration, ...at }) as const;
const resolved = { ...ready(1), type: 'StreamsResolved' };
const pkg = (generation: number, conditions: readonly object[], metadata: object = {}): Cached<'Package'> =>
  objectOf<'Package'>('sales', {}, { metadata: { generation, ...metadata }, status: { streamCount: 2, conditions } });

describe('a workspace', () => {
  test.each<[Cached<'Workspace'>[], boolean]>([
    [[paused], true],
    [[workspaceOf({ 'sluice.dev/paused': 'false' })], false],
    [[workspaceOf({})], false],
    [[workspaceOf({ 'sluice.dev/paused': 'true' }, { deletionTimestamp: '2026-01-01T00:00:00Z' })], false],
    [[], false],
  ])('%#', (workspaces, expected) => {
    expect(isPaused(createTestContext({ Workspace: workspaces }).context.caches, 'acme')).toBe(expected);
  });
});

describe('the status of an object in a paused workspace', () => {
  test('does not change if this generation was reconciled before', () => {
    const conditions = [ready(1), resolved];
    expect(planPaused(pkg(1, conditions), 'acme')).toEqual({ status: { streamCount: 2 }, conditions });
    const waiting = [{ ...ready(1), status: 'Unknown', reason: 'WaitingForWorkspace' }];
    expect(planPaused(pkg(1, waiting), 'acme').conditions).toEqual(waiting);
  });

  test('shows the pause if the object has changed or failed, and keeps older conditions', () => {
    const changed = planPaused(pkg(2, [ready(1), resolved]), 'acme');
    expect(changed.conditions).toMatchObject([
      { type: 'Ready', status: 'Unknown', reason: 'WorkspacePaused' },
      { type: 'StreamsResolved', observedGeneration: 1 },
    ]);
    expect(changed.status).toEqual({ streamCount: 2 });
    const retrying = [
      { ...ready(1), status: 'False' },
      { ...ready(1), type: 'Reconciling', reason: 'Retrying' },
    ];
    expect(planPaused(pkg(1, retrying), 'acme').conditions).toMatchObject([{ reason: 'WorkspacePaused' }]);
    expect(planPaused(objectOf<'Package'>('new', {}), 'acme').conditions).toMatchObject([
      { reason: 'WorkspacePaused' },
    ]);
  });
});

describe('in a paused workspace', () => {
  const never = () => Promise.reject(new Error('called'));

  test('nothing is reconciled', async () => {
    const { context } = createTestContext({ Workspace: [paused] });
    const outcome = await unlessPaused(context, PAUSABLE.Package, never)(pkg(2, [ready(1)]), attempt);
    expect(outcome.conditions[0]?.reason).toBe('WorkspacePaused');
    const other = createTestContext({ Workspace: [workspaceOf({})] });
    await expect(unlessPaused(other.context, PAUSABLE.Package, never)(pkg(1, []), attempt)).rejects.toThrow('called');
  });

  test('changes that only close a route are reconciled', async () => {
    const { context } = createTestContext({ Workspace: [paused] });
    const outcome = { status: {}, conditions: [] };
    const reconcile = unlessPaused(context, PAUSABLE.Package, async () => outcome, {
      closes: ({ spec }) => spec.archived === true,
    });
    const archived = { ...pkg(2, [ready(1)]), spec: { archived: true } };
    expect(await reconcile(archived, attempt)).toBe(outcome);
    expect((await reconcile(pkg(2, [ready(1)]), attempt)).conditions[0]?.reason).toBe('WorkspacePaused');
  });

  test('shows the pause once everything is closed that a change closes', async () => {
    const { context } = createTestContext({ Workspace: [paused] });
    const asked: string[] = [];
    const untilClosed = async ({ metadata }: Cached<'Package'>) => void asked.push(`${metadata.generation}`);
    const reconcile = unlessPaused(context, PAUSABLE.Package, never, { untilClosed });
    await reconcile(pkg(1, [ready(1)]), attempt);
    expect(asked).toEqual([]);
    await reconcile(pkg(2, [ready(1)]), attempt);
    expect(asked).toEqual(['2']);
    const failing = unlessPaused(context, PAUSABLE.Package, never, { untilClosed: never });
    await expect(failing(pkg(2, [ready(1)]), attempt)).rejects.toThrow('called');
  });

  test('a deletion waits for at most a minute, unless the object holds data', async () => {
    const deletionTimestamp = '2026-01-01T00:00:00Z';
    const object = pkg(2, [ready(2)], { deletionTimestamp });
    const early = createTestContext({ Workspace: [paused] }, { deletingForMs: 59_000 });
    const finalizeIn = (context: typeof early.context, holdsData: boolean) =>
      finalizeUnlessPaused(context, PAUSABLE.Package, never, async () => holdsData)(object, attempt);
    expect(await finalizeIn(early.context, false)).toMatchObject({ waitingMs: 5_000 });
    expect(early.forceRemoved).toEqual([]);
    const late = createTestContext({ Workspace: [paused] }, { deletingForMs: 60_000 });
    expect(await finalizeIn(late.context, false)).toBe('done');
    expect(late.forceRemoved).toEqual(['sales paused']);
    expect(await finalizeIn(late.context, true)).toMatchObject({ waitingMs: 5_000 });
  });
});

import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { AnyObject } from '../../kube/object.ts';
import type { ChangeHandler } from '../../kube/reflected.ts';
import { createRecentlyGone } from './recently-gone.ts';

const workspace = (uid: string, more: object = {}): AnyObject => ({
  metadata: { name: 'acme', uid, resourceVersion: '1', ...more },
});
const DELETING = workspace('a', { deletionTimestamp: '2026-01-01T00:00:00Z' });

function setUp() {
  const clock = createManualClock();
  let tell: ChangeHandler<AnyObject> = () => {};
  const subscribe = (handler: ChangeHandler<AnyObject>) => {
    tell = handler;
    return () => {};
  };
  const kept: number[] = [];
  const isGone = createRecentlyGone({ subscribe }, clock, (_name, leftMs) => kept.push(leftMs));
  const change = (old: AnyObject | undefined, current: AnyObject | undefined) => tell('updated', 'acme', old, current);
  return { clock, kept, change, isGone: () => isGone('acme') };
}

test('a Workspace that is not there when the process starts may have been deleted just before', async () => {
  const { clock, kept, isGone } = setUp();
  await clock.advance(59_999);
  expect(isGone()).toBe(true);
  expect(kept).toEqual([1]);
  await clock.advance(1);
  expect(isGone()).toBe(false);
  expect(kept).toEqual([1]);
});

test.each([
  ['from the beginning of its deletion', [workspace('a'), DELETING], [DELETING, undefined]],
  ['if its deletion was only noticed when it was gone', [workspace('a'), undefined], []],
  ['if it was replaced by another one', [workspace('a'), workspace('b')], [workspace('b'), workspace('b')]],
])('a Workspace is recently gone for a minute, %s', async (_how, first, then) => {
  const { clock, change, isGone } = setUp();
  await clock.advance(100_000);
  expect(isGone()).toBe(false);
  change(first[0], first[1]);
  await clock.advance(30_000);
  change(then[0], then[1]);
  expect(isGone()).toBe(true);
  await clock.advance(30_000);
  expect(isGone()).toBe(false);
});

test('other changes of a Workspace are not a deletion', async () => {
  const { clock, change, isGone } = setUp();
  await clock.advance(100_000);
  change(undefined, workspace('a'));
  change(workspace('a'), workspace('a'));
  expect(isGone()).toBe(false);
});

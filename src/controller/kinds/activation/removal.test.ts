import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import { turnsOf } from '../../../../test/support/event-loop-turns.ts';
import { errorFromStatus } from '../../../kube/kube-error.ts';
import { createLogger } from '../../../telemetry/log.ts';
import type { Cached } from '../../caches/caches.ts';
import { KEEP_REVOKED_MS, type OwnedActivation, planRemoval, removeRevoked, restName } from './removal.ts';

const pair = { namespace: 'acme', integration: 'globex', groupKey: 'customer/42' };
const NAME = restName(pair);
const REVOKED = '2026-01-01T00:00:00Z';
const DUE_MS = Date.parse(REVOKED) + KEEP_REVOKED_MS;
const rest = { manager: 'sluice-facade', time: REVOKED };
const controller = { manager: 'sluice-controller', subresource: 'status', time: '2026-01-20T00:00:00Z' };

function activation(
  name: string = NAME,
  more: { revoked?: boolean; managedFields?: OwnedActivation['metadata']['managedFields']; since?: string } = {},
): Cached<'Activation'> & OwnedActivation {
  const { revoked = true, managedFields = [rest, controller], since = REVOKED } = more;
  const effective = { type: 'Effective', status: 'False', reason: 'Revoked', lastTransitionTime: since };
  return objectOf<'Activation'>(
    name,
    { integration: pair.integration, groupKey: pair.groupKey, revoked },
    {
      metadata: { creationTimestamp: '2025-01-01T00:00:00Z', managedFields } as object,
      status: { conditions: [effective] },
    },
  ) as Cached<'Activation'> & OwnedActivation;
}

describe('an activation that was revoked using REST', () => {
  test('is named after the id of the pair', () => {
    expect(NAME).toMatch(/^act-[0-9a-z]{20}$/);
  });

  test('can be removed after 30 days, and not before', () => {
    expect(planRemoval(pair, [activation()], DUE_MS)).toBe('now');
    expect(planRemoval(pair, [activation()], DUE_MS - 1)).toEqual({ notBeforeMs: DUE_MS });
  });

  test.each<[string, readonly OwnedActivation[]]>([
    ['nothing', []],
    ['one that is open', [activation(NAME, { revoked: false })]],
    ['one with a sibling, which it keeps closed', [activation(), activation('by-hand', { revoked: false })]],
    ['one of another name', [activation('by-hand')]],
    [
      'one that somebody keeps in Git, too',
      [activation(NAME, { managedFields: [rest, { manager: 'argocd', time: REVOKED }] })],
    ],
    ['one that was made otherwise', [activation(NAME, { managedFields: [{ manager: 'kubectl', time: REVOKED }] })]],
    ['one without managed fields', [activation(NAME, { managedFields: [] })]],
    ['one without a time', [activation(NAME, { managedFields: [{ manager: 'sluice-facade' }] })]],
  ])('is kept if %s', (_what, objects) => {
    expect(planRemoval(pair, objects, DUE_MS * 2)).toBe('never');
  });
});

describe('the hourly check', () => {
  function look(
    cached: readonly Cached<'Activation'>[],
    live: readonly OwnedActivation[] = cached as OwnedActivation[],
    paused = false,
  ) {
    let nowMs = DUE_MS;
    const asked: string[] = [];
    const removed: object[] = [];
    const annotations = paused ? { annotations: { 'sluice.dev/paused': 'true' } } : {};
    const workspace = objectOf<'Workspace'>(
      'acme',
      { account: 'acme' },
      { namespace: undefined, metadata: annotations },
    );
    const { context } = createTestContext({ Workspace: [workspace], Activation: cached });
    const attempt = { failures: 0, signal: new AbortController().signal, log: createLogger({ level: 'silent' }) };
    const turn = (
      remove = async (_resource: object, { name }: { name: string }, preconditions?: object) => {
        removed.push({ name, ...preconditions });
        return true;
      },
    ) =>
      removeRevoked({
        caches: context.caches,
        readPair: async ({ groupKey }) => {
          asked.push(groupKey);
          return live;
        },
        remove,
        wallMs: () => nowMs,
      });
    return { turn, attempt, asked, removed, passMs: (ms: number) => (nowMs += ms) };
  }

  test('removes the version that was checked and runs again', async () => {
    const { turn, attempt, removed } = look([activation()]);
    expect(await turn()('all', attempt)).toEqual({ requeueAfterMs: 3_600_000 });
    expect(removed).toEqual([{ name: NAME, uid: `uid-${NAME}`, resourceVersion: '1' }]);
  });

  test('only reads Activations from the API server that may be due', async () => {
    const { turn, attempt, asked, removed } = look([
      activation(NAME, { since: '2026-01-01T00:00:01Z' }),
      activation('by-hand'),
    ]);
    await turn()('all', attempt);
    expect({ asked, removed }).toEqual({ asked: [], removed: [] });
    const sibling = look([activation(), activation('by-hand', { revoked: false })]);
    await sibling.turn()('all', sibling.attempt);
    expect(sibling.asked).toEqual([]);
    const paused = look([activation()], undefined, true);
    await paused.turn()('all', paused.attempt);
    expect(paused.asked).toEqual([]);
  });

  test('looks at many Activations in several turns of the event loop', async () => {
    const pause = new Int32Array(new SharedArrayBuffer(4));
    const blocking = Array.from({ length: 40 }, (_, i) =>
      Object.defineProperty(activation(`slow-${i}`), 'status', { get: () => void Atomics.wait(pause, 0, 0, 1) }),
    );
    const { turn, attempt } = look(blocking);
    expect(await turnsOf(turn()('all', attempt))).toBeGreaterThan(3);
  });

  test('keeps an Activation if the cache does not contain another Activation of its pair yet', async () => {
    const { turn, attempt, removed } = look([activation()], [activation(), activation('new', { revoked: false })]);
    await turn()('all', attempt);
    expect(removed).toEqual([]);
  });

  test('reads an Activation once if it was revoked later than its condition, and again when it is due', async () => {
    const later = activation(NAME, { managedFields: [{ ...rest, time: '2026-01-11T00:00:00Z' }] });
    const { turn, attempt, asked, removed, passMs } = look([later]);
    const pass = turn();
    await pass('all', attempt);
    await pass('all', attempt);
    passMs(10 * 86_400_000 - 1);
    await pass('all', attempt);
    expect({ asked: asked.length, removed }).toEqual({ asked: 1, removed: [] });
    passMs(1);
    await pass('all', attempt);
    expect({ asked: asked.length, removed: removed.length }).toEqual({ asked: 2, removed: 1 });
  });

  test('continues if an Activation is activated again at the same time, and fails for other errors', async () => {
    const { turn, attempt } = look([activation()]);
    const refuse = (status: number) => () => Promise.reject(errorFromStatus('DELETE', status, undefined));
    await expect(turn(refuse(409))('all', attempt)).resolves.toBeDefined();
    await expect(turn(refuse(500))('all', attempt)).rejects.toThrow('500');
  });
});

import { describe, expect, test } from 'vitest';
import { createTestContext, objectOf } from '../../../../test/support/controller/test-context.ts';
import type { Condition } from '../../../api/conditions.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { createLogger } from '../../../telemetry/log.ts';
import { type Cached, resourceOf } from '../../caches/caches.ts';
import { type CommonStatus, createStatusWriter } from '../../engine/status-writer.ts';
import { reconcilePair } from './reconcile.ts';

const MINUTE_MS = 60_000;
const attempt = {
  failures: 0,
  signal: new AbortController().signal,
  log: createLogger({ level: 'silent' }),
};

/** The pair of an activation in a namespace without a Workspace, with the clock of the controller. */
function setUp() {
  const activation = objectOf<'Activation'>('k', { integration: 'globex', groupKey: 'k' });
  const { context } = createTestContext({ Activation: [activation] });
  let wallMs = Date.parse('2026-01-01T00:00:00Z');
  let version = 1;
  const writes: string[][] = [];
  const client = {
    apply: async (_resource: object, _name: object, { status }: { status: CommonStatus }) => {
      writes.push(
        (status.conditions ?? []).map(
          (condition: Condition) => `${condition.type}=${condition.status}/${condition.reason}`,
        ),
      );
      return { ...activation, metadata: { ...activation.metadata, resourceVersion: `${++version}` }, status };
    },
  } as unknown as KubeClient;
  const status = createStatusWriter<Cached<'Activation'>['spec'], CommonStatus>({
    client,
    resource: resourceOf('Activation'),
    wallMs: () => wallMs,
  });
  const turn = reconcilePair({ ...context, wallMs: () => wallMs }, status);
  return {
    writes,
    /** The number of milliseconds until the next turn. */
    turnAfter: async (ms: number) => {
      wallMs += ms;
      return (await turn('acme/globex/k', attempt))?.requeueAfterMs;
    },
  };
}

describe('an activation outside of a workspace', () => {
  test('waits for the workspace, and fails after five minutes', async () => {
    const { writes, turnAfter } = setUp();
    expect(await turnAfter(0)).toBe(5 * MINUTE_MS);
    expect(await turnAfter(MINUTE_MS)).toBe(4 * MINUTE_MS);
    expect(writes).toEqual([['Ready=Unknown/WaitingForWorkspace', 'Reconciling=True/Progressing']]);
    expect(await turnAfter(4 * MINUTE_MS)).toBeUndefined();
    expect(await turnAfter(MINUTE_MS)).toBeUndefined();
    expect(writes.slice(1)).toEqual([['Ready=False/WaitingForWorkspace', 'Stalled=True/WaitingForWorkspace']]);
  });
});

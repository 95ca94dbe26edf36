import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { createLogger } from '../../telemetry/log.ts';
import { KubeError } from '../kube-error.ts';
import { SECRETS } from '../resource.ts';
import { createPolicyWatch } from './policy-watch.ts';

const DENIED = new KubeError({
  call: 'PATCH secrets',
  status: 403,
  reason: 'Forbidden',
  detail:
    "ValidatingAdmissionPolicy 'sluice-controller-secrets' with binding 'sluice-controller-secrets' denied request",
});
const FORBIDDEN = new KubeError({ call: 'PATCH secrets', status: 403, reason: 'Forbidden', detail: 'cannot patch' });

function start(username: string) {
  const state = { answer: undefined as Error | undefined, dryRuns: 0, results: [] as boolean[] };
  const clock = createManualClock();
  const stop = new AbortController();
  const client = {
    create: async () => ({ status: { userInfo: { username } } }),
    apply: async (_resource: unknown, _name: unknown, _body: unknown, { dryRun }: { dryRun?: boolean }) => {
      if (dryRun) state.dryRuns++;
      if (state.answer !== undefined) throw state.answer;
      return {};
    },
  };
  const running = createPolicyWatch({
    client: client as unknown as Parameters<typeof createPolicyWatch>[0]['client'],
    probe: { resource: SECRETS, name: { namespace: 'sluice-system', name: 'check' }, body: { type: 'Opaque' } },
    onResult: missing => state.results.push(missing),
    clock,
    log: createLogger({ level: 'silent' }),
  }).run(stop.signal);
  return Object.assign(state, { clock, end: () => (stop.abort(), running) });
}

test('reports an accepted dry run every minute until a policy denies it', async () => {
  const watched = start('system:serviceaccount:elsewhere:sluice-controller');
  await watched.clock.advance(60_000);
  expect(watched.results).toEqual([true, true]);
  watched.answer = DENIED;
  await watched.clock.advance(60_000);
  expect(watched.results).toEqual([true, true, false]);
  await watched.clock.advance(599_000);
  expect(watched.dryRuns).toBe(3);
  await watched.clock.advance(1_000);
  expect(watched.results).toEqual([true, true, false, false]);
  await watched.end();
});

test('does not report a dry run that fails for another reason, and tries again', async () => {
  const watched = start('system:serviceaccount:sluice-system:sluice-controller');
  watched.answer = FORBIDDEN;
  await watched.clock.advance(60_000);
  expect([watched.dryRuns, watched.results]).toEqual([2, []]);
  await watched.end();
});

test('does not check a user that is not a service account', async () => {
  const watched = start('kubernetes-admin');
  await watched.clock.advance(600_000);
  expect([watched.dryRuns, watched.results]).toEqual([0, []]);
  await watched.end();
});

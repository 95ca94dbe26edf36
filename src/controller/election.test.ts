import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../test/support/manual-clock.ts';
import { INSTANCE_LABEL, STORE_ANNOTATION } from '../api/well-known.ts';
import { errorFromStatus, KubeError } from '../kube/kube-error.ts';
import { RedisFormatError, RedisInstanceError } from '../redis/format.ts';
import { createLogger } from '../telemetry/log.ts';
import { sleep } from '../time/clock.ts';
import { createElection, type ElectionDeps } from './election.ts';
import { ForeignRedisError } from './epoch-claim.ts';

const refused = (status: number) => errorFromStatus('POST leases', status, { kind: 'Status', code: status }, undefined);

/** An election using an in-memory Lease, which can also be rejected. */
function start(lease?: object) {
  const clock = createManualClock();
  const state = {
    refusal: undefined as KubeError | undefined,
    works: true,
    failure: undefined as unknown,
    lease,
    others: [] as object[],
    /** The Leases that the next lists return instead of `others`. */
    next: [] as object[][],
    lists: 0,
    store: 'our-redis' as string | undefined,
    listRefusal: undefined as KubeError | undefined,
  };
  const answer = async (body?: { readonly metadata?: object; readonly spec?: object }) => {
    if (state.refusal !== undefined) throw state.refusal;
    const metadata = { name: 'l', uid: 'lease-uid', resourceVersion: '1', ...body?.metadata };
    if (body !== undefined) state.lease = { ...body, metadata };
    return state.lease as never;
  };
  const events: unknown[] = [];
  const deps: ElectionDeps = {
    client: {
      // The Lease returns 404 if its namespace does not exist.
      get: async () => (state.refusal?.status === 404 ? undefined : answer()),
      list: async (_resource, project) => {
        if (state.listRefusal !== undefined) throw state.listRefusal;
        state.lists++;
        return {
          items: (state.next.shift() ?? state.others).map(other => project(other as never)),
          resourceVersion: '1',
        };
      },
      create: (_resource, _name, body) => answer(body),
      update: async (_resource, _name, body) => {
        if (state.lease === undefined) throw refused(404);
        return answer(body);
      },
    },
    terms: { store: () => 'our-redis' },
    control: { readStore: async () => state.store },
    leading: { works: () => state.works, failure: () => state.failure },
    events: { record: ({ metadata }, note) => void events.push({ uid: metadata.uid, ...note }) },
    instance: '',
    namespace: 'apps',
    identity: 'pod-1',
    clock,
    random: () => 0,
    log: createLogger({ level: 'silent' }),
  };
  const election = createElection(deps);
  const stop = new AbortController();
  const work = { run: () => sleep(clock, 1e9, stop.signal) as Promise<void> };
  void election.elector.run(stop.signal, { onStartedLeading: () => work.run() });
  return { clock, state, events, election, work };
}

describe('a Lease that cannot be acquired', () => {
  test('because its namespace does not exist: reports both solutions', async () => {
    const { clock, state, election } = start();
    state.refusal = refused(404);
    await clock.advance(2_100);
    expect(election.impairments()).toEqual([
      {
        reason: 'LeaseUnavailable',
        cause: 'settings',
        message:
          'Lease apps/sluice-controller cannot be created because namespace apps does not exist. Create the namespace or set SLUICE_NAMESPACE to the namespace of the Lease.',
      },
    ]);
    state.refusal = undefined;
    await clock.advance(2_000);
    expect(election.impairments()).toEqual([]);
    expect(election.elector.isLeader()).toBe(true);
  });

  test('because it was edited by hand: reports the holder until this replica leads', async () => {
    const spec = { holderIdentity: 'someone', leaseDurationSeconds: 3_600 };
    const metadata = { name: 'l', uid: 'lease-uid', resourceVersion: '1' };
    const { clock, election } = start({ metadata, spec });
    await clock.advance(19_000);
    expect(election.impairments()).toEqual([]);
    await clock.advance(2_000);
    expect(election.impairments()).toEqual([
      {
        reason: 'LeaseUnavailable',
        cause: 'dependency',
        message:
          'Lease apps/sluice-controller is held by someone, which does not renew it. No controller leads until one minute after its last renewal. If the Lease was edited by hand, you can delete it.',
      },
    ]);
    await clock.advance(42_000);
    expect(election.impairments()).toEqual([]);
    expect(election.elector.isLeader()).toBe(true);
  });

  test('because a role is missing: reports the role', async () => {
    const { clock, state, election } = start();
    state.refusal = refused(403);
    await clock.advance(2_100);
    expect(election.impairments()).toMatchObject([
      { reason: 'LeaseUnavailable', cause: 'settings', message: expect.stringContaining('Role sluice-controller') },
    ]);
  });

  test('because the API server does not respond: reports this after 10 s', async () => {
    const { clock, state, election } = start();
    state.refusal = new KubeError({ call: 'GET lease', status: 0, reason: 'Timeout' });
    await clock.advance(9_000);
    expect(election.impairments()).toEqual([]);
    await clock.advance(2_000);
    expect(election.impairments()).toMatchObject([
      { reason: 'LeaseUnavailable', cause: 'dependency', message: expect.stringContaining('Timeout') },
    ]);
  });
});

describe('an installation with the same name in another namespace', () => {
  const leaseOf = (namespace: string, holderIdentity: string, labels: object = { [INSTANCE_LABEL]: '' }) => ({
    metadata: { namespace, name: 'sluice-controller', labels },
    spec: { holderIdentity },
  });
  const releasedOf = (store: string) => {
    const { metadata, spec } = leaseOf('theirs', '');
    return { metadata: { ...metadata, annotations: { [STORE_ANNOTATION]: store } }, spec };
  };

  test('keeps a replica from leading, and both solutions are reported', async () => {
    const { clock, state, election } = start();
    state.others = [leaseOf('theirs', 'pod-9')];
    await clock.advance(60_000);
    expect(election.elector.isLeader()).toBe(false);
    expect(state.lease).toBeUndefined();
    // It does not list the Leases for each attempt.
    expect(state.lists).toBeLessThan(10);
    expect(election.impairments()).toEqual([
      {
        reason: 'InstanceTaken',
        cause: 'settings',
        message:
          'Namespace theirs has an installation that also has no name, and its controller pod-9 holds the Lease theirs/sluice-controller. This replica does not lead because both would manage the same Workspaces, and events could be lost. Set SLUICE_INSTANCE (instance in the chart values) to another name. If that installation does not exist anymore, run kubectl delete lease sluice-controller --namespace theirs.',
      },
    ]);
    state.others = [leaseOf('theirs', '')];
    await clock.advance(13_000);
    expect(election.elector.isLeader()).toBe(true);
    expect(election.impairments()).toEqual([]);
  });

  test.each([
    ['another Redis', 'our-redis', 'their-redis'],
    ['a Redis that was replaced by an empty one', undefined, 'our-redis'],
  ])('keeps a replica from leading after it was stopped if it used %s', async (_what, own, last) => {
    const { clock, state, election } = start();
    state.store = own;
    state.others = [releasedOf(last)];
    await clock.advance(60_000);
    expect(election.elector.isLeader()).toBe(false);
    expect(election.impairments()).toMatchObject([
      {
        reason: 'InstanceTaken',
        message: expect.stringMatching(/^Namespace theirs .* was stopped, used another Redis.* kubectl delete lease/),
      },
    ]);
    state.others = [];
    await clock.advance(13_000);
    expect(election.elector.isLeader()).toBe(true);
  });

  test('does not keep a replica from leading after it was stopped if it used the same Redis', async () => {
    const { clock, state, election } = start();
    state.others = [releasedOf('our-redis')];
    await clock.advance(10);
    expect(election.elector.isLeader()).toBe(true);
    expect(state.lease).toMatchObject({ metadata: { annotations: { [STORE_ANNOTATION]: 'our-redis' } } });
  });

  test('does not keep a replica from leading if it has another name or no label, or is in the same namespace', async () => {
    const { clock, state, election } = start();
    state.others = [
      leaseOf('theirs', 'pod-9', { [INSTANCE_LABEL]: 'blue' }),
      leaseOf('old', 'pod-9', {}),
      leaseOf('apps', 'pod-2'),
    ];
    await clock.advance(10);
    expect(election.elector.isLeader()).toBe(true);
    expect(state.lease).toMatchObject({ metadata: { labels: { [INSTANCE_LABEL]: '' } } });
  });

  test('tries again after the one with the smaller namespace if both have written their Leases', async () => {
    const leadsAfter = async (namespace: string, ms: number) => {
      const { clock, state, election } = start();
      state.next = [[], [leaseOf(namespace, 'pod-9')]];
      await clock.advance(ms);
      expect(state.lists).toBeGreaterThan(1);
      return election.elector.isLeader();
    };
    expect(await leadsAfter('theirs', 5_000)).toBe(true);
    expect(await leadsAfter('aaa', 5_000)).toBe(false);
    expect(await leadsAfter('aaa', 15_000)).toBe(true);
  });

  test('does not make a replica unready that has been the leader', async () => {
    const { clock, state, election } = start();
    await clock.advance(10);
    state.lease = undefined;
    state.others = [leaseOf('theirs', 'pod-9')];
    await clock.advance(60_000);
    expect(election.elector.isLeader()).toBe(false);
    expect(election.impairments()).toMatchObject([{ reason: 'InstanceTaken', cause: 'dependency' }]);
  });

  test('keeps a replica from leading while the Leases cannot be listed, and the missing role is reported', async () => {
    const { clock, state, election } = start();
    state.listRefusal = refused(403);
    await clock.advance(2_100);
    expect(election.elector.isLeader()).toBe(false);
    expect(election.impairments()).toMatchObject([
      {
        reason: 'LeaseUnavailable',
        cause: 'settings',
        message: expect.stringContaining('ClusterRole sluice-controller'),
      },
    ]);
    state.listRefusal = undefined;
    await clock.advance(2_100);
    expect(election.elector.isLeader()).toBe(true);
    expect(election.impairments()).toEqual([]);
  });
});

describe('a leader that has not started its work', () => {
  test('reports immediately why its start has failed', async () => {
    const { clock, state, election } = start();
    state.works = false;
    await clock.advance(100);
    expect(election.impairments()).toEqual([]);
    state.failure = new Error('Connection is closed.');
    expect(election.impairments()).toEqual([
      {
        reason: 'TermNotStarted',
        cause: 'dependency',
        message:
          'This replica holds the Lease but cannot start its work: Connection is closed. Check the connection to Redis (SLUICE_REDIS_URL).',
      },
    ]);
    state.failure = new ForeignRedisError('this Redis belongs to the cluster theirs');
    expect(election.impairments()).toMatchObject([{ reason: 'ForeignRedis', cause: 'settings' }]);
    state.failure = new RedisFormatError(99);
    expect(election.impairments()).toMatchObject([{ reason: 'UnsupportedRedisFormat', cause: 'settings' }]);
    state.failure = new RedisInstanceError('blue', '');
    expect(election.impairments()).toMatchObject([
      {
        reason: 'ForeignRedis',
        cause: 'settings',
        message: expect.stringContaining('Set SLUICE_REDIS_URL to a separate'),
      },
    ]);
    state.works = true;
    expect(election.impairments()).toEqual([]);
  });

  test('reports this after 10 s if there is no failure', async () => {
    const { clock, state, election } = start();
    state.works = false;
    await clock.advance(10_100);
    expect(election.impairments()).toMatchObject([{ reason: 'TermNotStarted' }]);
  });

  test('records an Event on the Lease when it is released, and is impaired until then', async () => {
    const { clock, state, events, election, work } = start();
    state.works = false;
    state.failure = new Error('Connection is closed.');
    const given = Promise.withResolvers<void>();
    work.run = () => given.promise;
    await clock.advance(10);
    election.onGivenUp(state.failure);
    given.reject(state.failure);
    await clock.advance(10);
    expect(events).toMatchObject([{ uid: 'lease-uid', type: 'Warning', reason: 'TermNotStarted' }]);
    expect(election.elector.isLeader()).toBe(false);
    expect(election.impairments()).toMatchObject([{ reason: 'TermNotStarted' }]);
    work.run = () => sleep(clock, 1e9);
    // A standby does not report a problem while another replica is the leader.
    state.lease = {
      metadata: { name: 'l', uid: 'lease-uid', resourceVersion: '2' },
      spec: { holderIdentity: 'pod-2', leaseDurationSeconds: 15 },
    };
    await clock.advance(17_000);
    expect(election.impairments()).toEqual([]);
  });
});

import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type AuditedTenant, createAuditedTenant } from '../../test/support/controller/audited-tenant.ts';
import { objectOf } from '../../test/support/controller/test-context.ts';
import { redisUrl } from '../../test/support/redis/shared.ts';
import { tenantId } from '../core/ids/ids.ts';
import { type Actor, type Choose, everySchedule, interleave, type Step } from '../dataplane/testing/interleaving.ts';
import { createProcessClient, createWire, type Witness } from '../dataplane/testing/process-client.ts';
import type { AnyObject } from '../kube/object.ts';
import { PART_NUMBER, partKeys } from '../part/keys.ts';
import { createHashReader, readRoutes } from '../record/control-reader.ts';
import { FencedError } from '../record/control-store.ts';
import { connectRedis, type RedisClient } from '../redis/client.ts';
import { accountKeys, CLUSTER_KEYS, hintPartition } from '../redis/keys.ts';
import { createLogger } from '../telemetry/log.ts';
import { createLeadership } from './leadership.ts';
import { createTerms } from './term.ts';

const log = createLogger({ level: 'silent' });
const direct: Step = (_label, call) => call();
/** The state that a leader reads before making a decision. */
const READS = ['hashes', 'hgetall', 'hscan', 'read-page'];
/** Writes that are rejected after the leader was deposed. */
const PURGES = ['purge-inbox', 'purge-queue', 'purge-integration', 'purge-tenant', 'purge-part', 'purge-slot'];
const FENCED_WRITES = ['act', 'patch', 'gate', ...PURGES];
/** If a call may be repeated, faults in between have the same result. */
const REMOVALS = ['remove', 'remove-ids'];
const WRITES = ['lead', ...FENCED_WRITES];
const FAULTS: Actor['faults'] = ['crash', 'answer lost', 'not done'];
/** With SCHEDULES=all (`make test-model`), every fault is combined with every pause, and every two pauses. */
const every = process.env.SCHEDULES === 'all';
const some = every ? {} : { pairwise: true, oneIn: 25 };

/**
 * Two leaders: a deposed leader that does not know this and is paused between any two calls, and its successor. For any
 * order of calls and any crash, Redis must finally contain the state of the successor's objects. Once the successor has
 * begun, writes of the deposed leader are refused.
 */
describe('two leaders', () => {
  let client: RedisClient | undefined;
  beforeAll(async () => {
    client = await connectRedis(redisUrl(), log);
  });
  afterAll(() => client?.close());

  type Shared = ReturnType<typeof share>;
  function share() {
    const unique = randomUUID();
    return { unique, name: `t${unique}`, wire: createWire() };
  }

  async function createLeader({ unique, name, wire }: Shared, calls: readonly string[], witness?: Witness) {
    const turn = { step: direct };
    const redis = createProcessClient({
      redis: client as RedisClient,
      unique,
      wire,
      partition: hintPartition(`${tenantId(name)}:orders`),
      steps: new Set(calls),
      step: (label, call) => turn.step(label, call),
      ...(witness === undefined ? {} : { witness }),
    });
    const t = await createAuditedTenant(redis, { name, clusterIsOwn: true });
    const control: typeof t.control = {
      ...t.control,
      lead: async (...args) => {
        const answer = await t.control.lead(...args);
        if ('epoch' in answer) t.fence.epoch = answer.epoch;
        return answer;
      },
    };
    const leading = createLeadership({
      client: { get: async () => ({ metadata: { uid: 'cluster' } }) as never },
      control,
      caches: t.caches,
      tenants: t.tenants,
      events: { record: () => {} },
      terms: createTerms(),
      controllers: { enqueue: () => {} },
      nowMs: () => t.clock.ms,
      // Timers never end, so nothing checks whether Redis has lost data.
      clock: { nowMs: () => 0, wallMs: () => 0, setTimer: () => () => {} },
      log,
    });
    const { account, workspace, stream, integration, subscription } = t.objects;
    t.put('Account', account);
    t.put('Workspace', workspace);
    (t.caches.namespaces.store as never as Map<string, unknown>).set(name, { workspace: name, deleting: false });
    t.put('CatalogStream', stream);
    t.put('Integration', integration);
    t.put('Subscription', subscription);
    t.put('Activation', t.activation('red'));
    /** Starts the term, and then runs the workers for each pair and account. */
    const begin = [
      () => leading.begin({ transitions: 1, signal: new AbortController().signal } as never),
      async () => {
        for (const { spec } of t.caches.Activation.store.values()) await t.reconcilePair(pairOf(t, spec));
        t.queue.accounts.add(name);
        await t.work();
      },
    ];
    const lead = () => control.lead('cluster', 1, t.clock.ms);
    return { ...t, turn, lead, begin };
  }
  type Leader = Awaited<ReturnType<typeof createLeader>>;

  function pairOf({ name }: Pick<AuditedTenant, 'name'>, spec: { integration: string; groupKey: string }): string {
    return `${name}/${spec.integration}/${spec.groupKey}`;
  }

  /** Runs a leader's work. Each piece of work is retried after a failure until the leader is deposed. */
  function actor(
    name: string,
    leader: Leader,
    works: readonly (() => Promise<unknown>)[],
    faults: Actor['faults'],
  ): Actor {
    return {
      name,
      faults,
      run: async step => {
        leader.turn.step = step;
        for (const work of works) {
          for (let tries = 0; tries < 2; tries++) {
            try {
              await work();
              break;
            } catch (error) {
              if (error instanceof FencedError || tries > 0) throw error;
            }
          }
        }
      },
    };
  }

  const named = (l: Leader, name: string, spec: object, uid = `uid-${name}`): AnyObject =>
    objectOf(name, spec as never, { namespace: l.name, metadata: { uid } });
  function addBob(l: Leader): void {
    l.put('Integration', named(l, 'bob', { workspace: l.partner }));
    const { spec, ...rest } = l.objects.subscription;
    const metadata = { ...rest.metadata, name: 'bobs', uid: `bobs-${l.name}` };
    l.put('Subscription', { ...rest, metadata, spec: { ...spec, integration: 'bob' } } as never);
  }

  interface Scenario {
    /** The deposed leader has not brought anything into force yet. */
    readonly fresh?: boolean;
    /** The caches of the deposed leader, which run its work. */
    readonly old: (leader: Leader) => Promise<readonly (() => Promise<unknown>)[]>;
    /** The caches of the successor. */
    readonly next: (leader: Leader) => void;
  }
  const scenarios: Record<string, Scenario> = {
    'a block, activations and a plan, and none of them': {
      old: async l => {
        const target = { kind: 'CatalogStream', name: 'orders' };
        const { account } = l.objects;
        l.put('Account', { ...account, spec: { plan: 'Metered', includedTokens: 500, owners: [] } } as never);
        l.put('Block', named(l, 'block', { integration: 'ada', target, onUnblock: 'Continue' }));
        l.put('Activation', l.activation('red', { revoked: true }));
        l.put('Activation', l.activation('blue'));
        l.queue.accounts.add(l.name);
        const pairs = ['red', 'blue'].map(groupKey => () => l.reconcilePair(`${l.name}/ada/${groupKey}`));
        return [() => l.work(), () => l.tenants.sync(l.name), ...pairs];
      },
      next: l => l.put('Activation', l.activation('blue', { revoked: true })),
    },
    'an integration that is new to the successor, and an activation that is gone by then': {
      old: async l => {
        addBob(l);
        const activate = () => {
          l.put('Activation', named(l, 'bob-late', { integration: 'bob', groupKey: 'late' }));
          return l.reconcilePair(`${l.name}/bob/late`);
        };
        return [() => l.tenants.sync(l.name), activate];
      },
      next: addBob,
    },
    'a new stream and integration that are gone by then': {
      old: async l => {
        l.put('CatalogStream', { ...named(l, 'extra', l.objects.stream.spec as object) });
        addBob(l);
        return [() => l.tenants.sync(l.name)];
      },
      next: () => {},
    },
    'one that is still beginning': {
      fresh: true,
      old: async l => {
        await l.lead();
        const works = [() => l.tenants.sync(l.name), () => l.control.markClusterReady(l.fence.epoch)];
        return [...works, ...l.begin.slice(1)];
      },
      next: () => {},
    },
    'a sweep of what was made again': {
      old: async l => {
        l.remove('CatalogStream', l.objects.stream);
        l.remove('Subscription', l.objects.subscription);
        await l.tenants.sync(l.name);
        await l.garbage.pass(await l.listed());
        await l.work();
        const listed = await l.listed();
        return [() => l.garbage.pass(listed)];
      },
      next: l => {
        for (const kind of ['stream', 'subscription'] as const) {
          const object = l.objects[kind];
          const metadata = { ...object.metadata, uid: `${object.metadata.uid}-again` };
          l.put(kind === 'stream' ? 'CatalogStream' : 'Subscription', { ...object, metadata } as AnyObject);
        }
      },
    },
  };

  /** All slots that the leader knows. */
  async function slotsOf(l: Leader): Promise<Set<string>> {
    const { fences, stored } = await readRoutes(createHashReader(client as RedisClient), l.tenant);
    const parts = Object.keys(stored.routes.queues).map(queue => {
      return partKeys({ tenant: l.tenant, queue, gen: '', number: PART_NUMBER }).meta;
    });
    return new Set([...fences.keys(), ...parts, accountKeys(l.account).meta, CLUSTER_KEYS.meta]);
  }

  async function run(
    { fresh, old, next }: Scenario,
    { faults, calls }: { readonly faults: Actor['faults']; readonly calls: readonly string[] },
    choose: Choose,
    seen: { refused: number },
  ) {
    const shared = share();
    let begun = false;
    const trace: string[] = [];
    const taken: string[] = [];
    const witness: Witness = (name, meta, reply) => {
      if (!FENCED_WRITES.includes(name) && !REMOVALS.includes(name)) return;
      if (reply === 'FENCED') seen.refused++;
      else if (begun) taken.push(meta);
    };
    const first = await createLeader(shared, calls, witness);
    if (!fresh) for (const work of first.begin) await work();
    const works = await old(first);
    const successor = await createLeader(shared, calls);
    next(successor);
    const ended = async () => void (begun = true);
    trace.push(
      ...(await interleave(
        [actor('old', first, works, faults), actor('next', successor, [...successor.begin, ended], faults)],
        choose,
      )),
    );
    try {
      let last = successor;
      if (!begun) {
        last = await createLeader(shared, calls);
        next(last);
        for (const work of last.begin) await work();
      }
      last.turn.step = direct;
      // An unknown slot does not belong to any leader, so it is never referenced, and never ready.
      const known = await slotsOf(last);
      expect(taken.filter(meta => known.has(meta))).toEqual([]);
      expect(last.tenants.isSynced(last.name)).toBe(true);
      expect(await last.look()).toEqual([]);
      expect([...(await last.audit.compareAccounts([last.name]))]).toEqual([]);
    } catch (error) {
      throw new Error(`after:\n  ${trace.join('\n  ')}\n${String(error)}`, { cause: error });
    }
  }

  // These tests run concurrently. They use separate names, and mostly wait for Redis.
  describe.concurrent.each(Object.keys(scenarios))('%s', name => {
    test.each([
      {
        bounds: { preemptions: 2, faults: 0, ...(every ? {} : { oneIn: 8 }) },
        faults: [],
        calls: [...READS, ...WRITES, ...REMOVALS],
      },
      { bounds: { preemptions: 1, faults: 1, ...some }, faults: FAULTS, calls: WRITES },
    ])('pauses: $bounds.preemptions, faults: $bounds.faults', { timeout: 400_000 }, async ({ bounds, ...how }) => {
      const seen = { refused: 0 };
      const runs = await everySchedule(bounds, choose => run(scenarios[name] as Scenario, how, choose, seen));
      expect(runs).toBeGreaterThan(50);
      expect(seen.refused).toBeGreaterThan(10);
    });
  });
});

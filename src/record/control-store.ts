import { randomUUID } from 'node:crypto';
import { readBalance } from '../accounts/balance.ts';
import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { TenantRoutes } from '../core/routing/routes.ts';
import type { InboxRef } from '../plane/inbox-ref.ts';
import type { Argument, RedisClient } from '../redis/client.ts';
import { FORMAT, RedisFormatError, RedisInstanceError } from '../redis/format.ts';
import { accountKeys, CLUSTER_KEYS, integrationKeys, isIngressKeys, queueKeys, tenantKeys } from '../redis/keys.ts';
import { newKeysVersion } from '../redis/keys-version.ts';
import type { SlotPatch, StoredRoutes } from './control-plan.ts';
import { createHashReader, readRoutes } from './control-reader.ts';
import { readPages } from './hash-pages.ts';
import { MAIL_SERVER_FIELD } from './mail-reader.ts';
import type { OpenKeySource } from './open-keys.ts';
import { slicesOf } from './patch-slices.ts';

/** A newer controller is now the leader. This controller must stop immediately. */
export class FencedError extends Error {
  override readonly name = 'FencedError';
}

export interface ClusterState {
  readonly uid: string | undefined;
  readonly ready: boolean;
  readonly epoch: number;
}

export interface DrainState {
  /** The number of events that have not been routed to all subscriptions. 0 for a stream without events. */
  readonly unrouted: number;
  /** The number of open deliveries. 0 for a stream without events. */
  readonly open: number;
}

/** A change to the routes of a tenant. */
export interface RoutesChange {
  readonly fence: number;
  readonly have: TenantRoutes;
  readonly want: TenantRoutes;
  /** True if Redis is known to contain `have`. */
  readonly isKnown: boolean;
  readonly openKeys: () => OpenKeySource;
}

/**
 * The controller's record of applied changes, and data that does not belong to a specific stream: accounts, keys, and
 * the installation's state. Every write is fenced.
 */
export interface ControlRecord {
  /**
   * Claims the fencing epoch. Should be called when the controller has become the leader. If this Redis belongs to a
   * different cluster, its name is returned as `other`. `store` is the random id of this Redis, which exists for as
   * long as its data.
   *
   * @throws RedisFormatError if the data has another format
   * @throws RedisInstanceError if the data belongs to another installation in this cluster
   */
  readonly lead: (
    uid: string,
    transitions: number,
    nowMs: number,
  ) => Promise<{ epoch: number; store?: string | undefined } | { other: string }>;
  /** Returns the random id of this Redis. Undefined before a controller has led, and after the data was lost. */
  readonly readStore: () => Promise<string | undefined>;
  readonly readCluster: () => Promise<ClusterState>;
  /** Marks the control state as complete and records for the facade whether there is a mail server. */
  readonly markClusterReady: (fence: number) => Promise<void>;
  /**
   * Publishes the root key that the controller uses for signing and encryption to the other roles. @param rootKey its
   * fingerprint
   */
  readonly publishRootKey: (fence: number, rootKey: string) => Promise<void>;
  /**
   * Raises the fence for all data of this tenant before reading the data, which ensures that an older leader can't
   * write in between. The names in `known` are read even if the index of the tenant does not contain them.
   */
  readonly readTenant: (tenant: string, fence: number, known?: readonly TenantRoutes[]) => Promise<StoredRoutes>;
  readonly patch: (fence: number, patches: readonly SlotPatch[]) => Promise<void>;
  /** Writes an account's plan, along with its token counts. Returns true if the plan has changed. */
  readonly setAccount: (fence: number, account: string, plan: string, includedTokens: number) => Promise<boolean>;
  /** Undefined if Redis does not contain the account's plan. */
  readonly readBalance: (account: string) => ReturnType<typeof readBalance>;
  /** Records that a group key is open (`sinceMs`) or closed (null) for an integration; true when something changed. */
  readonly setActivation: (
    fence: number,
    integration: string,
    groupKey: string,
    sinceMs: number | null,
  ) => Promise<boolean>;
  /**
   * group key → the time at which it was activated, for a single integration. There may be 100,000 of them, so they are
   * not read at once. Group keys that are opened or closed in the meantime may or may not be included.
   */
  readonly readActivations: (integration: string) => Promise<ReadonlyMap<string, number>>;
  /** Adds the tenant to the list of tenants with control state. */
  readonly enlist: (fence: number, tenant: string) => Promise<void>;
  readonly forgetQueue: (fence: number, tenant: string, queue: string) => Promise<void>;
  readonly forgetInbox: (fence: number, tenant: string, inbox: InboxRef) => Promise<void>;
}

/** Used by the controller to access Redis. Includes the record and the stream parts. */
export interface ControlStore extends Omit<ControlRecord, 'forgetQueue' | 'forgetInbox'> {
  /**
   * Writes a change to all affected stream parts. Must be called before `patch` writes the change, and no activation of
   * this tenant may be written at the same time.
   */
  readonly applyParts: (change: RoutesChange) => Promise<void>;
  /**
   * Closes everything that is open in a part but isn't included in these routes or in `openKeys`. Writes nothing else.
   * Required because a previous controller, which can no longer write to the parts, may have opened something without
   * recording it. Must not run concurrently with writes to the tenant's activations.
   */
  readonly closeParts: (fence: number, routes: TenantRoutes, openKeys: RoutesChange['openKeys']) => Promise<void>;
  /** Takes back tokens from streams if they have been granted more than the account has left. */
  readonly reclaimTokens: (account: string) => Promise<void>;
  /** The data that the data plane keeps for an endpoint which is not just working. */
  readonly readHealth: (inbox: InboxRef) => Promise<string | undefined>;
  readonly readDrain: (tenant: string, queue: string) => Promise<DrainState>;
  /** Removes the part of a stream, including everything it contains. */
  readonly dropQueue: (fence: number, tenant: string, queue: string, gen: string) => Promise<void>;
  /** Removes an inbox. If `keepMs` is set, its records can be read for as long as their events are kept. */
  readonly dropInbox: (fence: number, tenant: string, inbox: InboxRef, keepMs: number) => Promise<void>;
}

type PatchSlot = (fence: number, meta: string, ops: SlotPatch['ops']) => Promise<void>;

function createPatchSlot(redis: RedisClient, instance: string): PatchSlot {
  // Redis may have lost its data after calling `lead`. In this case, we need to make sure that new data is not mistaken
  // for the data of another version.
  const marker: SlotPatch['ops'] = Object.entries({ format: FORMAT, instance }).map(field => ({
    command: 'HSETNX',
    key: CLUSTER_KEYS.meta,
    args: field,
  }));

  /**
   * Changes the version of the ingress keys together with the keys, and after a tenant was removed. In a Cluster, the
   * keys are in other slots, so the version must not be used there.
   */
  function withKeysVersion(fence: number, ops: SlotPatch['ops']): SlotPatch['ops'] {
    if (redis.cluster || !ops.some(({ key }) => isIngressKeys(key) || key === CLUSTER_KEYS.tenants)) return ops;
    return [...ops, { command: 'HSET', key: CLUSTER_KEYS.meta, args: newKeysVersion(fence) }];
  }

  return async function patchSlot(fence, meta, wanted) {
    const ops = meta === CLUSTER_KEYS.meta ? [...marker, ...wanted] : wanted;
    for (const slice of slicesOf(ops)) {
      const keys = [meta];
      const args: Argument[] = [fence];
      for (const { command, key, args: rest } of withKeysVersion(fence, slice)) {
        let index = keys.indexOf(key) + 1;
        if (index === 0) index = keys.push(key);
        args.push(command, index, rest.length, ...rest);
      }
      const answer = await redis.run('patch', keys, args);
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${meta}`);
    }
  };
}

function createActivationRecord(redis: RedisClient): Pick<ControlRecord, 'setActivation' | 'readActivations'> {
  return {
    async setActivation(fence, integration, groupKey, sinceMs) {
      const i = integrationKeys(integration);
      const answer = await redis.run('act', [i.meta, i.act], [fence, groupKey, sinceMs ?? '']);
      if (answer === 'FENCED') throw new FencedError(`a newer controller leads ${i.meta}`);
      return answer === 'OK';
    },

    async readActivations(integration) {
      const activations = new Map<string, number>();
      for (const [groupKey, since] of await readPages(redis, integrationKeys(integration).act)) {
        activations.set(groupKey, Number(since));
      }
      return activations;
    },
  };
}

function createForgetting(
  redis: RedisClient,
  patchSlot: PatchSlot,
): Pick<ControlRecord, 'forgetQueue' | 'forgetInbox'> {
  return {
    async forgetQueue(fence, tenant, queue) {
      const q = queueKeys(tenant, queue);
      const t = tenantKeys(tenant);
      await patchSlot(fence, q.meta, [{ command: 'UNLINK', key: q.meta, args: [] }]);
      await patchSlot(fence, t.meta, [
        { command: 'UNLINK', key: t.subs(queue), args: [] },
        { command: 'HDEL', key: t.index, args: [`q:${queue}`] },
      ]);
    },

    async forgetInbox(fence, tenant, { integration, sub }) {
      const i = integrationKeys(integration);
      const t = tenantKeys(tenant);
      const entry = `s:${integration}:${sub}`;
      // A Subscription can refer to anything. If it was never admitted, this must not write to a slot of another
      // tenant.
      const [known, hash] = await Promise.all([
        redis.call('hexists', t.index, entry),
        redis.call('exists', i.sub(sub)),
      ]);
      if (known === 0 && hash === 0) return;
      await patchSlot(fence, i.meta, [{ command: 'UNLINK', key: i.sub(sub), args: [] }]);
      await patchSlot(fence, t.meta, [{ command: 'HDEL', key: t.index, args: [entry] }]);
    },
  };
}

/**
 * @param chooseRootKey returns the fingerprint of the root key to sign and encrypt with. Called with the fingerprint of
 * the last leader before the controller leads
 * @param instance name of the controller's installation
 * @param hasMailServer whether the controller sends invitations by email. If undefined, the recorded value is kept
 */
export function createControlRecord(
  redis: RedisClient,
  chooseRootKey: (last: string | undefined) => string = () => '',
  instance = DEFAULT_INSTANCE,
  hasMailServer?: boolean,
): ControlRecord {
  const hgetall = redis.readHash;
  const readHashes = createHashReader(redis);
  const patchSlot = createPatchSlot(redis, instance);

  return {
    async lead(uid, transitions, nowMs) {
      const rootKey = chooseRootKey((await hgetall(CLUSTER_KEYS.meta)).rootKey);
      const args = [nowMs, uid, transitions, rootKey, FORMAT, instance, randomUUID()];
      const [answer, value, store] = (await redis.run('lead', [CLUSTER_KEYS.meta], args)) as string[];
      if (answer === 'INSTANCE') throw new RedisInstanceError(value as string, instance);
      if (answer === 'FORMAT') throw new RedisFormatError(Number(value));
      return answer === 'OK' ? { epoch: Number(value), store } : { other: value as string };
    },

    readStore: async () => (await hgetall(CLUSTER_KEYS.meta)).store,

    async readCluster() {
      const { uid, ready, epoch } = await hgetall(CLUSTER_KEYS.meta);
      // If the cluster is missing, the data was lost after `lead`, but before it was marked as ready.
      return { uid, ready: ready === '1' && uid !== undefined, epoch: Number(epoch ?? 0) };
    },

    async markClusterReady(fence) {
      const mailServer = hasMailServer === undefined ? [] : [MAIL_SERVER_FIELD, hasMailServer ? '1' : '0'];
      const set = (...args: string[]) => ({ command: 'HSET', key: CLUSTER_KEYS.meta, args }) as const;
      // Before the fences were raised, a leader with an older version of Sluice may have removed a key without changing it.
      const keysVersion = redis.cluster ? [] : [set(...newKeysVersion(fence))];
      await patchSlot(fence, CLUSTER_KEYS.meta, [...keysVersion, set('ready', '1', ...mailServer)]);
    },

    async publishRootKey(fence, rootKey) {
      const ops = [{ command: 'HSET', key: CLUSTER_KEYS.meta, args: ['rootKey', rootKey] }] as const;
      await patchSlot(fence, CLUSTER_KEYS.meta, ops);
    },

    async readTenant(tenant, fence, known) {
      // The state is read again after raising the fences, because an older leader may have added unknown data in the
      // meantime.
      for (;;) {
        const { stored, fences } = await readRoutes(readHashes, tenant, known);
        const lower = [...fences].filter(([, had]) => had !== fence);
        if (lower.length === 0) return stored;
        await Promise.all(lower.map(([meta]) => patchSlot(fence, meta, [])));
      }
    },

    async patch(fence, patches) {
      for (const { meta, ops } of patches) await patchSlot(fence, meta, ops);
    },

    async setAccount(fence, account, plan, includedTokens) {
      const key = accountKeys(account).meta;
      const want = { plan, included: String(includedTokens) };
      const have = await hgetall(key);
      const stands = have.plan === want.plan && have.included === want.included;
      // A new leader also does this for existing data, so that an older leader can't change it.
      if (stands && have.fence === String(fence)) return false;
      await patchSlot(fence, key, [{ command: 'HSET', key, args: Object.entries(want).flat() }]);
      return !stands;
    },

    readBalance: account => readBalance(redis, account),
    ...createActivationRecord(redis),

    async enlist(fence, tenant) {
      if ((await redis.call('sismember', CLUSTER_KEYS.tenants, tenant)) === 1) return;
      await patchSlot(fence, CLUSTER_KEYS.meta, [{ command: 'SADD', key: CLUSTER_KEYS.tenants, args: [tenant] }]);
    },
    ...createForgetting(redis, patchSlot),
  };
}

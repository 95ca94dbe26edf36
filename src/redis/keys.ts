/**
 * Every key of Sluice in Redis. The hash tag places the keys of a script in one slot: queue `{q:<tenant>:<queue>}`,
 * tenant `{t:<tenant>}`, integration `{i:<integration>}`, account `{a:<account>}`, calls with an Idempotency-Key
 * `{o:<account>}`, hints `{r:p}`, `{d:p}`, `{a:p}` and `{s:p}`, usage of a tenant's sandbox runs `{s:<tenant>}`, one run
 * with all of its data `{s:<tenant>:<run>}`, and the installation `{c}`.
 */

/** The number of partitions in each hint index. */
export const HINT_PARTITIONS = 16;

/** The keys of the controller's record of a queue. */
export function queueKeys(tenant: string, queue: string) {
  return { meta: `{q:${tenant}:${queue}}:meta` };
}

export function tenantKeys(tenant: string) {
  const tag = `{t:${tenant}}`;
  return {
    meta: `${tag}:meta`,
    keys: `${tag}:keys`,
    index: `${tag}:index`,
    /**
     * HASH: counts of the producer's series by bucket (see `fold-traffic.lua`). The size of this hash does not depend
     * on the traffic.
     */
    series: `${tag}:traf:ring`,
    /** HASH for one week: the counts of each queue and integration that are already included. */
    seriesMarks: (week: number) => `${tag}:traf:${week}`,
    subs: (queue: string) => `${tag}:subs:${queue}`,
  };
}

/** Returns true if this is the hash with the ingress keys of a tenant. */
export const isIngressKeys = (key: string): boolean => key.startsWith('{t:') && key.endsWith('}:keys');

export function integrationKeys(integration: string) {
  const tag = `{i:${integration}}`;
  return {
    meta: `${tag}:meta`,
    act: `${tag}:act`,
    sub: (sub: string) => `${tag}:s:${sub}`,
  };
}

export function accountKeys(account: string) {
  const tag = `{a:${account}}`;
  return {
    /** plan, included, used. */
    meta: `${tag}:meta`,
    /** `part.ledger` → total that was counted, and `forgotten`, `term` (`ended/ended-ledgers.lua`). */
    seen: `${tag}:seen`,
    /**
     * ZSET: `part.ledger` → time of its end, in ms. The ledger is forgotten a day later, once its part is found without
     * it.
     */
    ended: `${tag}:ended`,
    /** Part of a stream → tokens that were granted but not used yet. */
    hold: `${tag}:hold`,
    /** Part of a stream → its ledger and granted tokens. */
    grants: `${tag}:grants`,
    /** Part of a stream → its share of the stored bytes (`account-space.lua`). */
    space: `${tag}:space`,
    /** `ten:queue` → `<required tokens> <ms>`, for queues waiting for tokens. */
    short: `${tag}:short`,
    /** ZSET: invited address (hash) → ms of the last invitation mail, of the last 24 hours. */
    mails: `${tag}:mails`,
    /** HASH: invited address (hash) → uid of the Integration whose invitation was mailed. */
    mailed: `${tag}:mailed`,
    /** ZSET: names (`integration/id`) of charged but incomplete replays, by time of the charge. */
    replays: `${tag}:rp`,
    /** HASH: details of a replay. */
    replay: (name: string) => `${tag}:rp:${name}`,
  };
}

/**
 * The keys of the calls with an Idempotency-Key that belong to a workspace or an integration (`owner`). Those of an
 * account are in one slot because their number is limited.
 */
export function callKeys(account: string, owner: string) {
  const tag = `{o:${account}}`;
  return {
    /** ZSET: names of the account's calls, by the time they are forgotten (ms). */
    ofAccount: `${tag}:calls`,
    /** ZSET: the same for the calls of the owner. */
    calls: `${tag}:calls:${owner}`,
    /** HASH: request, seed, turn, untilMs; encrypted answer. Expires. */
    call: (name: string) => `${tag}:call:${name}`,
  };
}

/** Returns the part of a key that determines its slot, between the first opening brace and the next closing one. */
export function slotTag(key: string): string {
  return key.slice(0, key.indexOf('}') + 1);
}

/** The total usage of all sandbox runs of a tenant. */
export function sandboxUseKeys(tenant: string) {
  const tag = `{s:${tenant}}`;
  return {
    /** Runs, by when they end (ms). */
    runs: `${tag}:runs`,
    /** `events|bytes|deliveries:<run>` for each run, and without a run for the total. */
    use: `${tag}:use`,
  };
}

/** Keys that only exist in sandbox runs. */
export function sandboxKeys(tenant: string, run: string) {
  const tag = `{s:${tenant}:${run}}`;
  return {
    /** Start and end in ms, and `q:<queue>` for each queue with events of the run. */
    meta: `${tag}:meta`,
    /** HASH slot, space, ref → request of the last attempt, as JSON. */
    sent: `${tag}:sent`,
    /** Any key of production, in the run's slot. */
    of: (key: string) => `${tag}:${key.replace('{', '').replace('}', '')}`,
  };
}

/** Accounts with replays that are not complete, sandbox runs. */
export type HintKind = 'a' | 's';

export function hintKeys(kind: HintKind, partition: number) {
  const tag = `{${kind}:${partition}}`;
  return { due: `${tag}:due`, tokens: `${tag}:st`, channel: `sluice:${kind}:${partition}` };
}

/** Returns the partition of a member in a hint index, using FNV-1a. */
export function hintPartition(member: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < member.length; i++) hash = Math.imul(hash ^ member.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % HINT_PARTITIONS;
}

export const CLUSTER_KEYS = {
  /**
   * HASH: uid of the Kubernetes cluster, ready, epoch of the leading controller, fingerprint of its first root key,
   * random id of this Redis (`store`).
   */
  meta: '{c}:meta',
  /** SET of tenants that have control state. */
  tenants: '{c}:tenants',
  /** HASH: `tenant:queue:number` of each part → its generation. */
  parts: '{c}:parts',
  /**
   * HASH: `tenant:queue:number` of each part with events → generation, stored bytes, and its account
   * (`stored-bytes.ts`).
   */
  stored: '{c}:stored',
  /**
   * ZSET: name of a replica and the ids of its root keys → when it last reported them, in ms (`root-key-reports.ts`).
   */
  rootKeys: '{c}:rootKeys',
  /** ZSET: name of each active dispatcher → end of its activity period, in ms. */
  members: '{c}:members',
  /** Channel: the field of `parts` that the controller has changed, or '' if `members` changed. */
  partsChanged: '{c}:parts:changed',
  /** Channel on which roles report missing control state. */
  alarm: 'sluice:alarm',
} as const;

/**
 * Every key of Sluice in Redis. The hash tag puts the keys that one script needs into one slot:
 * queue `{q:<tenant>:<queue>}`, tenant `{t:<tenant>}`, integration `{i:<integration>}`, account `{a:<account>}`, hints
 * `{r:p}`, `{d:p}`, `{a:p}` and `{s:p}`, what sandbox runs of a tenant have used up `{s:<tenant>}`, one run
 * `{s:<tenant>:<run>}` with everything that lies in slots of its own in production,
 * the cluster's own `{c}`.
 */

/** Partitions of the hint indexes. */
export const HINT_PARTITIONS = 16;

/** Width of the buckets of event-id hashes and records: short enough to expire in time, long enough to be few. */
export const BUCKET_MS = 6 * 3_600_000;

export function bucketOf(ms: number): number {
  return Math.floor(ms / BUCKET_MS);
}

export function queueKeys(tenant: string, queue: string, gen = '') {
  const tag = `{q:${tenant}:${queue}}`;
  return {
    meta: `${tag}:meta`,
    events: `${tag}:m:${gen}`,
    bodies: `${tag}:b:${gen}`,
    behind: `${tag}:behind`,
    wake: `${tag}:wake`,
    expired: `${tag}:expired`,
    ids: (bucket: number) => `${tag}:id:${gen}:${bucket}`,
    traffic: (hour: number) => `${tag}:traf:${hour}`,
    why: (bucket: number) => `${tag}:why:${bucket}`,
  };
}

/** Keys with the events of one generation of a queue; all others end by themselves, or serve every generation. */
export function queueContents({ events, bodies }: ReturnType<typeof queueKeys>): string[] {
  return [events, bodies];
}

export function tenantKeys(tenant: string) {
  const tag = `{t:${tenant}}`;
  return {
    meta: `${tag}:meta`,
    gates: `${tag}:gates`,
    keys: `${tag}:keys`,
    index: `${tag}:index`,
    /** HASH: counts of the producer's series by bucket, as `fold-traffic.lua` says; as large for any traffic. */
    series: `${tag}:traf:ring`,
    /** HASH of a week: how much of what each queue and integration counted is in there. */
    seriesMarks: (week: number) => `${tag}:traf:${week}`,
    subs: (queue: string) => `${tag}:subs:${queue}`,
  };
}

export function integrationKeys(integration: string) {
  const tag = `{i:${integration}}`;
  return {
    meta: `${tag}:meta`,
    act: `${tag}:act`,
    ledger: `${tag}:led`,
    sub: (sub: string) => `${tag}:s:${sub}`,
    /** number of a chunk → what was taken of it. */
    replay: (replay: string) => `${tag}:rp:${replay}`,
  };
}

/** Keys of one subscription's inbox; `inc` is its generation, so that no key is ever used again. */
export function inboxKeys(integration: string, sub: string, inc: string) {
  const tag = `{i:${integration}}:${sub}.${inc}`;
  return {
    log: `${tag}:in`,
    pending: `${tag}:pend`,
    due: `${tag}:due`,
    claims: `${tag}:cl`,
    tries: `${tag}:try`,
    /** Refs (and `ref:replay`) that are dead, skipped or expired. */
    final: `${tag}:fin`,
    /** ref → ids of its replays. */
    replays: `${tag}:rp`,
    /** The last bodies that failed attempts were answered with. */
    failures: `${tag}:body`,
    records: (bucket: number) => `${tag}:rec:${bucket}`,
  };
}

/** Keys of an inbox that do not end by themselves. */
export function inboxContents(x: ReturnType<typeof inboxKeys>): string[] {
  return [x.log, x.pending, x.due, x.claims, x.tries, x.final, x.replays, x.failures];
}

export function accountKeys(account: string) {
  const tag = `{a:${account}}`;
  return {
    /** plan, included, used. */
    meta: `${tag}:meta`,
    /** `int.generation of its ledger` → total that was folded. */
    seen: `${tag}:seen`,
    /** `ten:queue` → tokens that its batch reserved; and by whom and when: `<epoch> <ms>`. */
    hold: `${tag}:hold`,
    holder: `${tag}:holder`,
    /** Part of a stream → its ledger and what was granted to it. What it has left of that is in `hold`, under the same name. */
    grants: `${tag}:grants`,
    /** `ten:queue` → `<tokens that it needs> <ms>`, of queues that wait for tokens. */
    short: `${tag}:short`,
    /** Replays that are charged and not complete, by when they were charged; and what each is. */
    replays: `${tag}:rp`,
    replay: (replay: string) => `${tag}:rp:${replay}`,
  };
}

/** The part of a key that says in which slot it lies: between its first brace and the next closing one. */
export function slotTag(key: string): string {
  return key.slice(0, key.indexOf('}') + 1);
}

/** What the sandbox runs of a tenant have used up, together. */
export function sandboxUseKeys(tenant: string) {
  const tag = `{s:${tenant}}`;
  return {
    /** Runs, by when they end (ms). */
    runs: `${tag}:runs`,
    /** `events|bytes|deliveries:<run>` of each, and without a run of all. */
    use: `${tag}:use`,
  };
}

/** Keys of one sandbox run besides those that production has, too. */
export function sandboxKeys(tenant: string, run: string) {
  const tag = `{s:${tenant}:${run}}`;
  return {
    /** begun, ends: ms. */
    meta: `${tag}:meta`,
    /** SET of queues that events of the run came to. */
    queues: `${tag}:queues`,
    /** HASH `int/sub.inc` → queue, of the inboxes that the run made. */
    inboxes: `${tag}:inboxes`,
    /** HASH `int/sub.inc ref` → what the last attempt was made with, as JSON. */
    sent: `${tag}:sent`,
    /** Any key of production, in the run's slot. */
    of: (key: string) => `${tag}:${key.replace('{', '').replace('}', '')}`,
  };
}

/** Queues for routers, subscriptions for dispatchers, accounts with replays that are not complete, sandbox runs. */
export type HintKind = 'r' | 'd' | 'a' | 's';

export function hintKeys(kind: HintKind, partition: number) {
  const tag = `{${kind}:${partition}}`;
  return { due: `${tag}:due`, tokens: `${tag}:st`, channel: `sluice:${kind}:${partition}` };
}

/** FNV-1a of the member: which partition of a hint index it lies in. */
export function hintPartition(member: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < member.length; i++) hash = Math.imul(hash ^ member.charCodeAt(i), 0x01000193);
  return (hash >>> 0) % HINT_PARTITIONS;
}

export const CLUSTER_KEYS = {
  /** HASH: uid of the Kubernetes cluster, ready, epoch of the leading controller and fingerprint of its root key. */
  meta: '{c}:meta',
  /** SET of tenants that have control state. */
  tenants: '{c}:tenants',
  /** HASH: `tenant:queue:number` of each part → its generation. */
  parts: '{c}:parts',
  /** ZSET: name of each dispatcher at work on parts → until when it counts as such, ms. */
  members: '{c}:members',
  /** Channel: the field of `parts` that the controller has changed, or '' if `members` changed. */
  partsChanged: '{c}:parts:changed',
  /** Channel on which roles report missing control state. */
  alarm: 'sluice:alarm',
} as const;

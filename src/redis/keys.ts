/**
 * Every key of Sluice in Redis. The hash tag puts the keys that one script needs into one slot:
 * queue `{q:<tenant>:<queue>}`, tenant `{t:<tenant>}`, integration `{i:<integration>}`, hints `{r:p}` and `{d:p}`,
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
    ids: (bucket: number) => `${tag}:id:${gen}:${bucket}`,
    traffic: (hour: number) => `${tag}:traf:${hour}`,
    why: (bucket: number) => `${tag}:why:${bucket}`,
  };
}

export function tenantKeys(tenant: string) {
  const tag = `{t:${tenant}}`;
  return {
    meta: `${tag}:meta`,
    gates: `${tag}:gates`,
    keys: `${tag}:keys`,
    index: `${tag}:index`,
    subs: (queue: string) => `${tag}:subs:${queue}`,
  };
}

export function integrationKeys(integration: string) {
  const tag = `{i:${integration}}`;
  return {
    meta: `${tag}:meta`,
    act: `${tag}:act`,
    sub: (sub: string) => `${tag}:s:${sub}`,
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
    final: `${tag}:fin`,
    records: (bucket: number) => `${tag}:rec:${bucket}`,
  };
}

export function accountKeys(account: string) {
  return { meta: `{a:${account}}:meta` };
}

export type HintKind = 'r' | 'd';

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
  /** HASH: uid of the Kubernetes cluster, ready, epoch of the leading controller. */
  meta: '{c}:meta',
  /** SET of tenants that have control state. */
  tenants: '{c}:tenants',
  /** Channel on which roles report missing control state. */
  alarm: 'sluice:alarm',
} as const;

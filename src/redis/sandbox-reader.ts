import type { RedisClient } from './client.ts';
import { createInboxStore, type InboxRef, inboxMember } from './inbox-store.ts';
import { inboxKeys, sandboxKeys } from './keys.ts';

/** Commands that are sent at once. */
const AT_ONCE = 200;

/** What a run consists of. */
export interface RunParts {
  readonly queues: readonly string[];
  /** `int/sub.inc` → the queue whose events the inbox takes. */
  readonly inboxes: ReadonlyMap<string, string>;
}

/** @param ofRun client of the run, as `createSandboxClient` makes it */
export async function readRunParts(ofRun: RedisClient, tenant: string, run: string): Promise<RunParts> {
  const s = sandboxKeys(tenant, run);
  const [queues, inboxes] = await Promise.all([ofRun.call('smembers', s.queues), ofRun.readHash(s.inboxes)]);
  return { queues: (queues as string[]).toSorted(), inboxes: new Map(Object.entries(inboxes)) };
}

/** When each inbox is to be looked at, ms: 0 where something is parked, for its group key is closed; those with nothing open are left out. */
export async function readDues(
  ofRun: RedisClient,
  nowMs: number,
  inboxes: readonly InboxRef[],
): Promise<ReadonlyMap<string, number>> {
  const store = createInboxStore(ofRun);
  const dues = new Map<string, number>();
  for (let at = 0; at < inboxes.length; at += AT_ONCE) {
    await Promise.all(
      inboxes.slice(at, at + AT_ONCE).map(async inbox => {
        const { pending } = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
        const [{ nextMs }, open] = await Promise.all([store.exchange(inbox, nowMs, []), ofRun.call('zcard', pending)]);
        if (nextMs !== undefined || open !== 0) dues.set(inboxMember(inbox), nextMs ?? 0);
      }),
    );
  }
  return dues;
}

/** Group keys of what is open in an inbox of the run, also of those that are closed by now. */
export async function readOpenKeys(ofRun: RedisClient, inbox: InboxRef): Promise<ReadonlySet<string>> {
  const { pending } = inboxKeys(inbox.integration, inbox.sub, inbox.inc);
  const members = (await ofRun.call('zrange', pending, 0, -1)) as string[];
  // A member is the key of its lane, a NUL and the ref.
  return new Set(members.map(member => member.slice(0, member.indexOf('\0'))));
}

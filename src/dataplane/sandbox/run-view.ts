import type { RedisClient } from '../../redis/client.ts';
import { type InboxRef, inboxMember, parseInboxMember } from '../../redis/inbox-store.ts';
import { createSandboxClient } from '../../redis/sandbox-client.ts';
import { createSandboxGate, type SandboxGate } from '../../redis/sandbox-gate.ts';
import { readRunParts } from '../../redis/sandbox-reader.ts';
import type { InboxGate, SandboxSource } from '../../redis/sandbox-source.ts';
import type { SandboxRun } from '../../redis/sandbox-store.ts';

/** RunView is a run being processed. */
export interface RunView extends SandboxRun {
  readonly tenant: string;
  readonly run: string;
  /** Redis client with access to the keys of the run. */
  readonly ofRun: RedisClient;
  readonly queues: readonly string[];
  /** Queue names by the `int/sub.inc` of each inbox in the run. */
  readonly inboxes: ReadonlyMap<string, string>;
  /** Adds an inbox to the run. */
  readonly add: (inbox: InboxRef, queue: string) => Promise<void>;
  /**
   * Copies the gate of an inbox of the run from production, including these group keys and any that the run already
   * has. Returns what production says.
   */
  readonly copyGate: (inbox: InboxRef, groupKeys: Iterable<string>) => Promise<InboxGate>;
}

export async function openRun(
  redis: RedisClient,
  source: SandboxSource,
  nowMs: () => number,
  tenant: string,
  run: string,
  known: SandboxRun,
): Promise<RunView> {
  const ofRun = createSandboxClient(redis, tenant, run, known.endsMs);
  const gate: SandboxGate = createSandboxGate({ source, ofRun, tenant, run, nowMs });
  const parts = await readRunParts(ofRun, tenant, run);
  const inboxes = new Map(parts.inboxes);
  return {
    ...known,
    tenant,
    run,
    ofRun,
    queues: parts.queues,
    inboxes,
    add: async (inbox, queue) => {
      if (inboxes.has(inboxMember(inbox))) return;
      await gate.note([{ inbox, queue }]);
      inboxes.set(inboxMember(inbox), queue);
    },
    copyGate: (inbox, groupKeys) => {
      const siblings = [...inboxes.keys()].filter(each => each.startsWith(`${inbox.integration}/`));
      const queue = inboxes.get(inboxMember(inbox)) ?? '';
      return gate.copy({ inbox, queue }, groupKeys, siblings.map(parseInboxMember));
    },
  };
}

/** Returns the member of a run in the hint index. */
export function runMember(tenant: string, run: string): string {
  return `${tenant}:${run}`;
}

export function parseRunMember(member: string): { readonly tenant: string; readonly run: string } {
  const colon = member.indexOf(':');
  return { tenant: member.slice(0, colon), run: member.slice(colon + 1) };
}

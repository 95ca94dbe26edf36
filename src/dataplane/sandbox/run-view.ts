import { createRunClient, type RunClient } from '../../part/sandbox/run-client.ts';
import type { SandboxRun } from '../../part/sandbox/sandbox-store.ts';
import type { RedisClient } from '../../redis/client.ts';

/** RunView is a run being processed. */
export interface RunView extends SandboxRun {
  readonly tenant: string;
  readonly run: string;
  /** Production. */
  readonly redis: RedisClient;
  /** Redis client with access to the run keys. */
  readonly ofRun: RunClient;
}

export function openRun(redis: RedisClient, tenant: string, run: string, known: SandboxRun): RunView {
  return { ...known, tenant, run, redis, ofRun: createRunClient(redis, tenant, run, known.endsMs) };
}

/** Returns the member to use for a run in the index of hints. */
export function runMember(tenant: string, run: string): string {
  return `${tenant}:${run}`;
}

export function parseRunMember(member: string): { readonly tenant: string; readonly run: string } {
  const colon = member.indexOf(':');
  return { tenant: member.slice(0, colon), run: member.slice(colon + 1) };
}

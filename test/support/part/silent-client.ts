import type { ScriptClient } from '../../../src/part/call.ts';

/** The result of calls to a part whose Redis master does not respond. */
export const SILENCES: readonly (readonly [what: string, answer: () => Promise<never>])[] = [
  ['fails', () => Promise.reject(new Error('Command timed out'))],
  ['does not answer', () => new Promise<never>(() => {})],
];

/** Returns a client that receives `answer` for all calls to the parts of this workspace. */
export function silentClient(client: ScriptClient, tenant: string, answer: () => Promise<never>): ScriptClient {
  return {
    ...client,
    runNamed: (script, call) =>
      JSON.stringify(call.keys).includes(`${tenant}:`) ? answer() : client.runNamed(script, call),
  };
}

import type { ScriptClient } from '../../../src/part/call.ts';

/** How the calls to a part end that is on a Redis master which doesn't reply. */
export const SILENCES: readonly (readonly [what: string, answer: () => Promise<never>])[] = [
  ['fails', () => Promise.reject(new Error('Command timed out'))],
  ['does not answer', () => new Promise<never>(() => {})],
];

/** A client that gets `answer` to all calls for the parts of this workspace. */
export function silentClient(client: ScriptClient, tenant: string, answer: () => Promise<never>): ScriptClient {
  return {
    ...client,
    runNamed: (script, call) =>
      JSON.stringify(call.keys).includes(`${tenant}:`) ? answer() : client.runNamed(script, call),
  };
}

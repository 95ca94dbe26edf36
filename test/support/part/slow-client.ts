import type { ScriptClient } from '../../../src/part/call.ts';

/** The outcome of a call: its response arrives, the call is lost, or its response is lost. */
export type Fate = 'done' | 'lost' | 'unanswered';

/** A client whose calls wait until they are picked. Calls that are picked late contain data that was read earlier. */
export function createSlowClient(client: ScriptClient) {
  const waiting: ((fate: Fate) => Promise<void>)[] = [];
  function slow<A extends readonly unknown[], R>(call: (...args: A) => Promise<R>): (...args: A) => Promise<R> {
    return (...args) =>
      new Promise<R>((resolve, reject) => {
        waiting.push(async fate => {
          if (fate === 'lost') return reject(new Error('lost'));
          const answer = await call(...args);
          return fate === 'done' ? resolve(answer) : reject(new Error('lost'));
        });
      });
  }
  return {
    client: { runNamed: slow(client.runNamed), runNamedBuffers: slow(client.runNamedBuffers) } satisfies ScriptClient,
    waiting: (): number => waiting.length,
    /** Sends one of the calls. Afterwards, its process has made its next call. */
    async send(which: number, fate: Fate): Promise<void> {
      const [call] = waiting.splice(which % waiting.length, 1);
      await call?.(fate);
      await new Promise(resolve => setImmediate(resolve));
    },
  };
}

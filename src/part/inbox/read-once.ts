import type { PartClient } from './find-part.ts';

/**
 * Returns a client for a single report, which reads each value once. Most decisions about the events of a page are read
 * from the same few values. It can only be used to read.
 */
export function createReadOnce(client: PartClient): PartClient {
  const replies = new Map<string, Promise<unknown>>();
  function once<Reply>(request: readonly unknown[], read: () => Promise<Reply>): Promise<Reply> {
    const name = JSON.stringify(request);
    let reply = replies.get(name) as Promise<Reply> | undefined;
    if (reply === undefined) replies.set(name, (reply = read()));
    return reply;
  }
  return {
    runNamed: (script, call) => once([script.name, call], () => client.runNamed(script, call)),
    runNamedBuffers: (script, call) => once([script.name, 'buffers', call], () => client.runNamedBuffers(script, call)),
    call: (command, key, ...args) => once([command, key, ...args], () => client.call(command, key, ...args)),
    readHash: key => once([key], () => client.readHash(key)),
  };
}

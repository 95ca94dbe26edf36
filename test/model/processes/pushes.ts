import { Redis } from 'ioredis';
import { type Push, parsePush } from '../../../src/part/claims/message.ts';
import { type Part, partKeys } from '../../../src/part/keys.ts';

/** The pushes of all parts, as received by the dispatchers. */
export interface Pushes {
  /** Receives the pushes of this part from now on. */
  readonly follow: (parts: readonly Part[]) => Promise<void>;
  /** The messages received since the last call, after all messages published before this call have been received. */
  readonly take: () => Promise<readonly { readonly part: Part; readonly push: Push }[]>;
  readonly close: () => void;
}

export function listenToPushes(url: string): Pushes {
  const connection = new Redis(url);
  const followed = new Map<string, Part>();
  let pushes: { part: Part; push: Push }[] = [];
  connection.on('smessageBuffer', (channel: Buffer, message: Buffer) => {
    const part = followed.get(String(channel));
    if (part !== undefined) pushes.push({ part, push: parsePush(message) });
  });
  return {
    async follow(parts) {
      const channels = parts.map(part => [partKeys(part).channel, part] as const).filter(([key]) => !followed.has(key));
      for (const [channel, part] of channels) {
        followed.set(channel, part);
        await connection.ssubscribe(channel);
      }
    },
    async take() {
      const [first] = followed.keys();
      // The response is received after the messages that were sent before.
      if (first !== undefined) await connection.ssubscribe(first);
      const taken = pushes;
      pushes = [];
      return taken;
    },
    close: () => connection.disconnect(),
  };
}

import type { InboxRef } from '../../plane/inbox-ref.ts';
import { type FindStream, type PartClient, readPart } from '../inbox/find-part.ts';
import { type Part, slotOf } from '../keys.ts';

/**
 * Reads the data of each inbox from its part, using a single call for each stream. The results are in the same order as
 * `inboxes`. Returns undefined if the stream is unknown or has no part.
 *
 * @param read answers in the order of its slots
 */
export async function readByStream<I extends InboxRef, T>(
  redis: PartClient,
  findStream: FindStream,
  inboxes: readonly I[],
  read: (part: Part, slots: readonly string[], inboxes: readonly I[]) => Promise<readonly (T | undefined)[]>,
): Promise<(T | undefined)[]> {
  const streams = new Map<string, { readonly tenant: string; readonly queue: string; readonly at: number[] }>();
  for (const [i, inbox] of inboxes.entries()) {
    const stream = findStream(inbox);
    if (stream === undefined) continue;
    const name = `${stream.tenant} ${stream.queue}`;
    const known = streams.get(name) ?? { ...stream, at: [] };
    streams.set(name, known);
    known.at.push(i);
  }
  const found = Array.from<T | undefined>({ length: inboxes.length });
  for (const { tenant, queue, at } of streams.values()) {
    const part = await readPart(redis, tenant, queue);
    if (part === undefined) continue;
    const some = at.map(i => inboxes[i] as I);
    const answers = await read(
      part,
      some.map(({ sub, inc }) => slotOf(sub, inc)),
      some,
    );
    for (const [n, i] of at.entries()) found[i] = answers[n];
  }
  return found;
}

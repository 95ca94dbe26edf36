import type { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock } from '../time/clock.ts';
import { errorFromStatus, KubeError, NO_ANSWER } from './kube-error.ts';

/** A watch event. In case of a bookmark, the object only contains a resourceVersion. */
export type WatchEvent<T> = { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T };

/** The maximum line length, which exceeds the largest object accepted by etcd (1.5 MiB) after escaping. */
const LONGEST_LINE = 16 * 1024 * 1024;

/** The number of events to handle before the event loop performs everything else that is due. */
const EVENTS_PER_TURN = 50;

/**
 * Yields the events of a watch until the server closes the watch. Each line of the response contains one JSON document.
 *
 * @param options.inactivityMs after this long without any data, the connection is considered dead. The server will send
 * a bookmark about once per minute.
 * @throws KubeError on an ERROR event, a malformed or incomplete line, or a dead connection. The status is 410 if the
 * resourceVersion is too old.
 */
export async function* readWatch<T>(
  body: Readable,
  options: { call: string; clock: Clock; inactivityMs: number },
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const { call, clock, inactivityMs } = options;
  const silence = new KubeError({ call, status: NO_ANSWER, reason: 'Timeout', detail: 'nothing heard' });
  let heardMs = clock.nowMs();
  const look = () => {
    const leftMs = heardMs + inactivityMs - clock.nowMs();
    if (leftMs <= 0) body.destroy(silence);
    else cancel = clock.setTimer(look, leftMs);
  };
  let cancel = clock.setTimer(look, inactivityMs);
  try {
    const decoder = new TextDecoder();
    let rest = '';
    let events = 0;
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      heardMs = clock.nowMs();
      const text = decoder.decode(chunk, { stream: true });
      rest += text;
      // Searching `rest` would copy the whole line again for each of its chunks.
      if (!text.includes('\n')) {
        if (rest.length > LONGEST_LINE) throw malformed(call);
        continue;
      }
      const lines = rest.split('\n');
      rest = lines.pop() as string;
      for (const line of lines) {
        if (line === '') continue;
        // Let other work run in between, so that a fast server can't stop everything else in this process.
        if (++events % EVENTS_PER_TURN === 0) await nextTurn();
        yield parseLine<T>(call, line);
      }
    }
    if (rest.trim() !== '') yield parseLine<T>(call, rest);
  } finally {
    cancel();
    // Close the body, so that the connection is no longer in use.
    body.destroy();
  }
}

function parseLine<T>(call: string, line: string): WatchEvent<T> {
  let event: { type?: unknown; object?: { metadata?: { resourceVersion?: unknown }; code?: number } };
  try {
    event = JSON.parse(line);
  } catch {
    throw malformed(call);
  }
  if (event?.type === 'ERROR') throw errorFromStatus(call, event.object?.code ?? 500, event.object);
  const known =
    event?.type === 'ADDED' || event?.type === 'MODIFIED' || event?.type === 'DELETED' || event?.type === 'BOOKMARK';
  if (!known || typeof event.object?.metadata?.resourceVersion !== 'string') throw malformed(call);
  return event as WatchEvent<T>;
}

function malformed(call: string): KubeError {
  return new KubeError({ call, status: NO_ANSWER, reason: 'MalformedAnswer' });
}

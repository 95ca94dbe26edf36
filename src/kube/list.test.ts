import { describe, expect, it } from 'vitest';
import type { KubeClient } from './client.ts';
import { KubeError } from './kube-error.ts';
import { createList, INITIAL_EVENTS_END } from './list.ts';
import { NAMESPACES } from './resource.ts';
import type { Call } from './transport.ts';
import type { WatchEvent } from './watch-stream.ts';

type Event = WatchEvent<{ metadata: { uid?: string; resourceVersion: string; annotations?: object } }>;

const object = (uid: string, resourceVersion: string) => ({ metadata: { uid, resourceVersion } });
const END: Event = {
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '9', annotations: { [INITIAL_EVENTS_END]: 'true' } } },
};

/** Lists objects using a watch that yields `events` and then fails with `error`, if there is one. */
function listOver(events: readonly Event[], error?: Error) {
  let watches = 0;
  let chunks = 0;
  const watch = async function* () {
    watches++;
    yield* events;
    if (error !== undefined) throw error;
  } as unknown as KubeClient['watch'];
  const call = <T>(_call: Call): Promise<T> => {
    chunks++;
    return Promise.resolve({ metadata: { resourceVersion: '5' }, items: [object('chunk', '5')] } as T);
  };
  const list = createList(call, watch);
  return {
    list: () => list(NAMESPACES, (each: ReturnType<typeof object>) => each.metadata, { streamed: true }),
    counts: () => ({ watches, chunks }),
  };
}

const CHUNKED = { items: [{ uid: 'chunk', resourceVersion: '5' }], resourceVersion: '5' };

describe('a streamed list', () => {
  it('contains the last state of each object up to the bookmark at its end', async () => {
    const { list, counts } = listOver([
      { type: 'ADDED', object: object('a', '1') },
      { type: 'ADDED', object: object('b', '2') },
      { type: 'BOOKMARK', object: { metadata: { resourceVersion: '7' } } },
      { type: 'MODIFIED', object: object('b', '8') },
      { type: 'DELETED', object: object('a', '9') },
      END,
      { type: 'ADDED', object: object('c', '10') },
    ]);
    expect(await list()).toEqual({ items: [{ uid: 'b', resourceVersion: '8' }], resourceVersion: '9' });
    expect(counts()).toEqual({ watches: 1, chunks: 0 });
  });

  it.each([
    ['ends without this bookmark', undefined],
    ['fails', new KubeError({ call: 'WATCH', status: 0, reason: 'ConnectionFailed' })],
    ['is not ready yet', new KubeError({ call: 'WATCH', status: 429, reason: 'TooManyRequests' })],
  ])('is read in chunks if it %s, and tried again the next time', async (_case, error) => {
    const { list, counts } = listOver([{ type: 'ADDED', object: object('a', '1') }], error);
    expect(await list()).toEqual(CHUNKED);
    await list();
    expect(counts()).toEqual({ watches: 2, chunks: 2 });
  });

  it('is read in chunks from then on if the server refuses it', async () => {
    const { list, counts } = listOver([], new KubeError({ call: 'WATCH', status: 422, reason: 'Invalid' }));
    expect(await list()).toEqual(CHUNKED);
    await list();
    expect(counts()).toEqual({ watches: 1, chunks: 2 });
  });
});

import { expect, test } from 'vitest';
import { createEndpointHealths } from './endpoint-healths.ts';

/** Enough for a busy machine. */
const SOON = { timeout: 20_000 };

const inbox = { integration: 'int_1', sub: 'sub_1', inc: 'a' };
const FAILING = '1000 3 0 0 -';
const GONE = '1000 4 0 0 - 2000 gone';

function start() {
  const redis = new Map<string, string>();
  const news: string[] = [];
  let reads = 0;
  const healths = createEndpointHealths({
    read: async ({ sub }) => {
      reads++;
      return redis.get(sub);
    },
    onNews: (sub, first) => news.push(`${sub}${first ? ' first' : ''}`),
    log: { debug: () => {} } as never,
  });
  return { redis, news, healths, reads: () => reads };
}

test('an endpoint that was not read is unknown, and a working endpoint is not read again', async () => {
  const { healths, reads } = start();
  expect(await healths.current(inbox)).toBe('unknown');
  healths.noteAll(['sub_1'], new Map());
  expect(await healths.current(inbox)).toBeUndefined();
  expect(reads()).toBe(0);
});

test('reads a failing endpoint again for its status', async () => {
  const { healths, redis } = start();
  healths.noteAll(['sub_1'], new Map([['sub_1', FAILING]]));
  redis.set('sub_1', '1000 9 0 0 -');
  expect(await healths.current(inbox)).toEqual({ sinceMs: 1_000, failures: 9 });
  redis.clear();
  expect(await healths.current(inbox)).toBeUndefined();
});

test('reports only new information from the audit', () => {
  const { healths, news } = start();
  const passes: Record<string, string>[] = [
    { sub_2: FAILING },
    { sub_2: '1000 8 5000 5000 -' },
    { sub_2: GONE },
    { sub_2: GONE },
    {},
    {},
  ];
  for (const texts of passes) healths.noteAll(['sub_1', 'sub_2'], new Map(Object.entries(texts)));
  expect(news).toEqual(['sub_1 first', 'sub_2', 'sub_2', 'sub_2']);
});

test('a message of the data plane is used immediately', async () => {
  const { healths, news, redis } = start();
  healths.noteAll(['sub_1'], new Map());
  redis.set('sub_1', GONE);
  healths.onDisabled(inbox);
  healths.onDisabled(inbox);
  await expect.poll(() => news, SOON).toEqual(['sub_1 first', 'sub_1']);
});

test('removes deleted subscriptions and the state of an earlier leader', async () => {
  const { healths } = start();
  healths.noteAll(['sub_1', 'sub_2'], new Map());
  healths.prune(sub => sub === 'sub_1');
  expect(await healths.current({ ...inbox, sub: 'sub_2' })).toBe('unknown');
  expect(await healths.current(inbox)).toBeUndefined();
  healths.forget();
  expect(await healths.current(inbox)).toBe('unknown');
});

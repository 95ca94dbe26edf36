import { expect, test } from 'vitest';
import { tenantId } from '../core/ids/ids.ts';
import { cacheBehind } from '../kube/kube-error.ts';
import { OutageError, SecretsUnreadableError } from './engine/outcome.ts';
import { syncEveryTenant } from './initial-sync.ts';
import type { TermState } from './term.ts';

const forbidden = new SecretsUnreadableError('SecretsForbidden', 'no binding');
const away = new OutageError('RedisUnavailable', 'Redis does not answer');

/** Applies tenants, each of which fails with the given error. */
function syncAll(failures: Readonly<Record<string, Error | undefined>>) {
  const enqueued: string[] = [];
  const marked: string[] = [];
  const logged: unknown[] = [];
  const state: TermState = {
    term: { signal: new AbortController().signal } as TermState['term'],
    over: new AbortController().signal,
    epoch: 1,
    store: undefined,
    held: undefined,
    applied: false,
    failure: undefined,
  };
  const deps = {
    terms: { fence: () => 1 },
    control: {
      enlist: async (_fence: number, tenant: string) => void marked.push(tenant),
      markClusterReady: async () => void marked.push('ready'),
    },
    tenants: {
      sync: async (name: string) => {
        if (failures[name] !== undefined) throw failures[name];
      },
    },
    enqueueTenant: (name: string) => enqueued.push(name),
    log: { error: () => {}, info: (...line: unknown[]) => logged.push(...line) },
  };
  const done = syncEveryTenant(
    deps as unknown as Parameters<typeof syncEveryTenant>[0],
    state,
    new Set(Object.keys(failures)),
  );
  return { done, enqueued, marked, logged, state };
}

test('a term starts even if no tenant has readable Secrets, and tries them again', async () => {
  const { done, enqueued, state } = syncAll({ a: forbidden, b: cacheBehind('secrets of b') });
  await done;
  expect(enqueued).toEqual(['a', 'b']);
  expect(state.applied).toBe(true);
});

test('tenants without readable Secrets are listed first, so that ingress does not take them for unknown', async () => {
  const { done, marked } = syncAll({ a: forbidden, b: cacheBehind('secrets of b'), c: away, d: undefined });
  await done;
  expect(marked).toEqual([tenantId('a'), tenantId('b'), 'ready']);
});

test('a term does not start if all tenants fail, some of them because of Redis', async () => {
  await expect(syncAll({ a: forbidden, b: away }).done).rejects.toBe(away);
  const { done, enqueued } = syncAll({ a: undefined, b: away });
  await done;
  expect(enqueued).toEqual(['b']);
});

// Operators wait for this message before they start the other roles with a restored Redis.
test('all workspaces are only reported as applied if each of them is', async () => {
  const all = syncAll({ a: undefined, b: undefined });
  expect(all.logged).toEqual([]);
  await all.done;
  expect(all.logged).toEqual([{ workspaces: 2 }, 'applied all workspaces']);
  const some = syncAll({ a: undefined, b: forbidden });
  await some.done;
  expect(some.logged).toEqual([]);
});

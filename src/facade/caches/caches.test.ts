import { describe, expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import { Refusal } from '../../http/refusal.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AnyObject, ObjectName } from '../../kube/object.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createCaches } from './caches.ts';
import { payForLookups } from './lookups.ts';

/**
 * A facade with empty caches, and an API server with a single invitation.
 * @param owner installation that is responsible for its workspace
 */
function openWorld({ instance = '', owner = '' } = {}) {
  const listed: string[] = [];
  const read: string[] = [];
  const invited = {
    metadata: { namespace: 'shop', name: 'int-1', uid: 'u', resourceVersion: '7' },
    spec: { invitedEmail: 'Ada@Example.com' },
    status: { invitation: { tokenHash: 'a'.repeat(64) } },
  };
  const assigned = {
    metadata: { name: 'shop', uid: 'w', resourceVersion: '6' },
    spec: { account: 'shop', ...(owner === '' ? {} : { instance: owner }) },
  };
  const list = (async ({ kind }: { kind: string }, project: (object: AnyObject) => object, { namespace = '' }) => {
    listed.push(`${kind}/${namespace}`);
    const items = { Integration: [invited], Workspace: [assigned] }[kind] ?? [];
    return { items: items.map(item => project(item)), resourceVersion: '7' };
  }) as unknown as KubeClient['list'];
  const get = (async ({ kind }: { kind: string }, { name }: ObjectName) => {
    read.push(`${kind}/${name}`);
    if (kind === 'Integration') return name === 'int-1' ? invited : undefined;
    return kind !== 'Package' && name === 'shop' ? assigned : undefined;
  }) as unknown as KubeClient['get'];
  const caches = createCaches(
    { list, get } as KubeClient,
    createManualClock(),
    createLogger({ level: 'silent' }),
    instance,
  );
  return { caches, listed, read };
}

test('an invitation that another replica has just issued is found by the hash of its token', async () => {
  const { caches, listed } = openWorld();
  const found = await caches.findBy('Integration', 'tokenHash', 'a'.repeat(64));
  expect(found?.metadata.name).toBe('int-1');
  expect(listed).toEqual(['Integration/']);
});

test('a missing object, or a value that is not in the index, is not found', async () => {
  const { caches } = openWorld();
  expect(await caches.findBy('Integration', 'tokenHash', 'int-1')).toBeUndefined();
  await expect(caches.findBy('Workspace', 'nothing' as never, 'x')).rejects.toThrow('no index is called nothing');
});

test.each(['find', 'findLive', 'findNamed'] as const)('%s pays for each lookup once, before it starts', async how => {
  const { caches, listed, read } = openWorld();
  let points = 2;
  const charge = () => {
    if (points-- === 0) throw new Refusal('rate_limited');
  };
  const look = async (): Promise<unknown> =>
    how === 'findNamed'
      ? caches.findNamed('Package', { namespace: 'shop', name: 'all' })
      : caches[how]('Package', 'pkg_1');
  expect(await payForLookups(charge, look)).toBeUndefined();
  expect(await payForLookups(charge, look)).toBeUndefined();
  expect(points).toBe(0);
  await expect(payForLookups(charge, look)).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(look()).rejects.toThrow('outside of a call');
  expect([...listed, ...read]).toHaveLength(2);
});

describe('an object read from the API server', () => {
  test.each([
    { instance: '', owner: '', exists: true },
    { instance: 'blue', owner: 'blue', exists: true },
    { instance: '', owner: 'blue', exists: false },
    { instance: 'blue', owner: '', exists: false },
    { instance: 'blue', owner: 'green', exists: false },
  ])('exists for "$instance" if its workspace belongs to "$owner": $exists', async ({ instance, owner, exists }) => {
    const { caches } = openWorld({ instance, owner });
    const found = [
      await caches.findBy('Integration', 'tokenHash', 'a'.repeat(64)),
      await caches.live('Integration', { namespace: 'shop', name: 'int-1' }),
      (await caches.listLive('Integration', 'shop'))[0],
      await caches.live('Workspace', { name: 'shop' }),
      await caches.live('Account', { name: 'shop' }),
    ];
    expect(found.map(object => object !== undefined)).toEqual(found.map(() => exists));
    expect(await caches.isTaken('Workspace', 'shop')).toBe(!exists);
    expect(await caches.isTaken('Workspace', 'free')).toBe(false);
  });
});

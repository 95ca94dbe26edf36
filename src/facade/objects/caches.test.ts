import { expect, test } from 'vitest';
import { createManualClock } from '../../../test/support/manual-clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { AnyObject } from '../../kube/object.ts';
import { createLogger } from '../../telemetry/log.ts';
import { createCaches } from './caches.ts';

/** A facade whose caches are empty still, in front of an API server with one invitation. */
function openWorld() {
  const listed: string[] = [];
  const invited = {
    metadata: { namespace: 'shop', name: 'int-1', uid: 'u', resourceVersion: '7' },
    spec: { invitedEmail: 'Ada@Example.com' },
    status: { invitation: { tokenHash: 'a'.repeat(64) } },
  };
  const list = (async ({ kind }: { kind: string }, project: (object: AnyObject) => object, { namespace = '' }) => {
    listed.push(`${kind}/${namespace}`);
    return { items: kind === 'Integration' ? [project(invited)] : [], resourceVersion: '7' };
  }) as unknown as KubeClient['list'];
  const caches = createCaches({ list } as KubeClient, createManualClock(), createLogger({ level: 'silent' }));
  return { caches, listed };
}

test('an invitation that another replica issued a moment ago is found by the hash of its token', async () => {
  const { caches, listed } = openWorld();
  const found = await caches.findBy('Integration', 'tokenHash', 'a'.repeat(64));
  expect(found?.metadata.name).toBe('int-1');
  expect(listed).toEqual(['Integration/']);
});

test('a missing object is not found, nor is a value that is not in the index', async () => {
  const { caches } = openWorld();
  expect(await caches.findBy('Integration', 'tokenHash', 'int-1')).toBeUndefined();
  await expect(caches.findBy('Workspace', 'nothing', 'x')).rejects.toThrow('no index is called nothing');
});

import { expect, test } from 'vitest';
import { STORE_ANNOTATION } from '../api/well-known.ts';
import type { KubeClient } from '../kube/client.ts';
import { createLeaseStore, type LeaseSpec } from '../kube/lease.ts';
import { createTerms } from './term.ts';

test('a replica that leads again does not write the id of the Redis of its earlier term', async () => {
  const { signal } = new AbortController();
  let annotations: object | undefined = { [STORE_ANNOTATION]: 'from-another-leader' };
  const update = async (_resource: object, _name: object, body: { readonly metadata: { annotations?: object } }) => {
    annotations = body.metadata.annotations;
    return { ...body, metadata: { ...body.metadata, resourceVersion: '1' } };
  };
  const client = { update } as unknown as KubeClient;
  const terms = createTerms();
  const leases = createLeaseStore(client, { namespace: 'apps', name: 'l' }, { labels: {}, store: terms.store });
  const write = async (spec: LeaseSpec) => {
    const store = Object.values(annotations ?? {})[0] as string;
    await leases.update({ uid: 'u', resourceVersion: '1', spec: {}, store }, spec, signal);
    return annotations;
  };
  const ended = new AbortController();
  terms.begin({ transitions: 1, signal: ended.signal }, ended.signal).store = 'earlier';
  ended.abort();
  for (const renewal of [false, true]) {
    const written = await write({ holderIdentity: 'a', leaseTransitions: 3 });
    expect([renewal, written]).toEqual([renewal, { [STORE_ANNOTATION]: 'from-another-leader' }]);
  }
  terms.begin({ transitions: 3, signal }, signal).store = 'current';
  expect(await write({ holderIdentity: 'a', leaseTransitions: 3 })).toEqual({ [STORE_ANNOTATION]: 'current' });
  // The Lease can be released after the end of the term, or be recreated after it was deleted.
  expect(await write({ holderIdentity: '', leaseTransitions: 3 })).toEqual({ [STORE_ANNOTATION]: 'current' });
  expect(terms.store()).toBe('current');
});

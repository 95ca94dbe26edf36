import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, it } from 'vitest';
import { parse } from 'yaml';
import { connect } from './client.ts';
import { KubeError } from './kube-error.ts';
import { createLeaseStore, formatMicroTime } from './lease.ts';
import type { AnyObject } from './object.ts';
import { NAMESPACES, type Resource, SECRETS } from './resource.ts';

const CONFIG_MAPS: Resource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
type ConfigMap = AnyObject & { readonly data?: Record<string, string> };

const client = connect({ kubeconfig: inject('kubeconfig') });
const namespace = `client-${Date.now()}`;
await client.create(NAMESPACES, { name: namespace }, {});

afterAll(async () => {
  await client.remove(NAMESPACES, { name: namespace });
  await client.close();
});

describe('client', () => {
  it('returns undefined for missing objects, and false when removing them', async () => {
    const name = { namespace, name: 'nothing' };
    expect(await client.get(CONFIG_MAPS, name)).toBeUndefined();
    expect(await client.remove(CONFIG_MAPS, name)).toBe(false);
  });

  it('reports the manager that owns a field, and takes over the field by force', async () => {
    const name = { namespace, name: 'owned' };
    await client.apply(CONFIG_MAPS, name, { data: { a: '1' } }, { fieldManager: 'kubectl-like' });
    const refused = await client.apply(CONFIG_MAPS, name, { data: { a: '2' } }, { fieldManager: 'other' }).then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(refused).toBeInstanceOf(KubeError);
    expect(refused).toMatchObject({ status: 409, reason: 'Conflict', conflictManagers: ['kubectl-like'] });
    expect((refused as KubeError).causes).toMatchObject([{ field: '.data.a' }]);

    const forced = await client.apply<ConfigMap>(
      CONFIG_MAPS,
      name,
      { data: { a: '2' } },
      { fieldManager: 'other', force: true },
    );
    expect(forced.data).toEqual({ a: '2' });
  });

  it('does not change the resourceVersion of an unchanged object', async () => {
    const name = { namespace, name: 'unchanged' };
    const apply = () => client.apply(CONFIG_MAPS, name, { data: { a: '1' } }, { fieldManager: 'one' });
    const first = await apply();
    expect((await apply()).metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  it('checks preconditions', async () => {
    const name = { namespace, name: 'guarded' };
    const before = await client.create<ConfigMap>(CONFIG_MAPS, name, { data: { a: '1' } });
    const { uid, resourceVersion } = before.metadata;
    await client.mergePatch(CONFIG_MAPS, name, { metadata: { uid, resourceVersion }, data: { a: '2' } });
    await expect(
      client.mergePatch(CONFIG_MAPS, name, { metadata: { uid, resourceVersion }, data: { a: '3' } }),
    ).rejects.toMatchObject({ status: 409 });
    await expect(client.remove(CONFIG_MAPS, name, { uid: 'another' })).rejects.toMatchObject({ status: 409 });
    expect(await client.remove(CONFIG_MAPS, name, { uid })).toBe(true);
  });

  it('lists in chunks and keeps the projections', async () => {
    const names = Array.from({ length: 12 }, (_, i) => `page-${String(i).padStart(2, '0')}`);
    for (const name of names)
      await client.create(CONFIG_MAPS, { namespace, name }, { metadata: { labels: { page: 'y' } } });
    const { items, resourceVersion } = await client.list(CONFIG_MAPS, (object: AnyObject) => object.metadata.name, {
      namespace,
      labelSelector: 'page=y',
      limit: 5,
    });
    expect(items.toSorted()).toEqual(names);
    expect(resourceVersion).toMatch(/^\d+$/);
  });

  it('streams a list from the watch cache that is not older than the call', async () => {
    let requests = 0;
    const counted = connect({
      kubeconfig: inject('kubeconfig'),
      metrics: { answered: () => requests++, policiesMissing: () => {} },
    });
    // With chunks, this would require a request for each object.
    const selection = { namespace, labelSelector: 'stream=y', streamed: true, limit: 1 };
    const lists = () => counted.list(CONFIG_MAPS, ({ metadata }: AnyObject) => metadata.resourceVersion, selection);
    const names = ['stream-1', 'stream-2', 'stream-3'];
    const metadata = { labels: { stream: 'y' } };
    for (const name of names) {
      const made = await client.create(CONFIG_MAPS, { namespace, name }, { metadata });
      // Compares with the object that was written immediately before. It would be missing from a stale cache.
      expect((await lists()).items).toContain(made.metadata.resourceVersion);
    }
    requests = 0;
    const { items, resourceVersion } = await lists();
    expect(items).toHaveLength(names.length);
    expect(Number(resourceVersion)).toBeGreaterThanOrEqual(Math.max(...items.map(Number)));
    expect(requests).toBe(1);
    await client.remove(CONFIG_MAPS, { namespace, name: 'stream-1' });
    expect((await lists()).items).toHaveLength(names.length - 1);
    await counted.close();
  });

  it('returns only metadata if requested', async () => {
    const name = { namespace, name: 'unread' };
    const before = await client.list(SECRETS, (object: AnyObject) => object, { namespace, metadataOnly: true });
    await client.create(SECRETS, name, { type: 'sluice.dev/unread', stringData: { key: 'hidden' } });
    const selection = { namespace, metadataOnly: true, fieldSelector: 'type!=sluice.dev/test' };
    const { items } = await client.list(SECRETS, (object: object) => object, selection);
    const seen: object[] = [...items];
    const { resourceVersion } = before;
    for await (const { object } of client.watch<object>(SECRETS, {
      ...selection,
      resourceVersion,
      timeoutSeconds: 60,
    })) {
      seen.push(object);
      break;
    }
    expect(seen).toHaveLength(2);
    for (const object of seen) {
      expect(object).toMatchObject({ metadata: { name: 'unread', namespace } });
      expect(object).not.toHaveProperty('data');
    }
  });

  it('selects by field', async () => {
    await client.create(SECRETS, { namespace, name: 'typed' }, { type: 'sluice.dev/test', stringData: { key: 'x' } });
    await client.create(SECRETS, { namespace, name: 'untyped' }, { stringData: { key: 'x' } });
    const { items } = await client.list(SECRETS, (object: AnyObject) => object.metadata.name, {
      namespace,
      fieldSelector: 'type=sluice.dev/test',
    });
    expect(items).toEqual(['typed']);
  });

  it('reports a compacted version in a watch as 410', async () => {
    const watching = async () => {
      for await (const event of client.watch(CONFIG_MAPS, { namespace, resourceVersion: '1', timeoutSeconds: 30 })) {
        if (event.type !== 'BOOKMARK') return event;
      }
      return undefined;
    };
    // In a new cluster, etcd has not compacted anything, so it sends all earlier changes instead.
    const answer = await watching().catch((error: unknown) => error);
    if (answer instanceof KubeError) expect(answer.status).toBe(410);
    else expect(answer).toHaveProperty('object.metadata.name');
  });

  it('ends a watch with its signal', async () => {
    const stop = new AbortController();
    const { resourceVersion } = await client.list(CONFIG_MAPS, () => 0, { namespace });
    const watch = client.watch<ConfigMap>(CONFIG_MAPS, { namespace, resourceVersion, signal: stop.signal });
    const first = watch.next();
    await client.create(CONFIG_MAPS, { namespace, name: 'seen' }, {});
    expect((await first).value).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'seen' } } });
    const second = watch.next();
    stop.abort(new Error('enough'));
    await expect(second).rejects.toThrow('enough');
  });

  it('keeps a lease with optimistic concurrency', async () => {
    const leases = createLeaseStore(client, { namespace, name: 'leader' });
    const { signal } = new AbortController();
    const now = formatMicroTime(Date.now());
    const spec = {
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      renewTime: now,
      acquireTime: now,
      leaseTransitions: 0,
    };
    expect(await leases.get(signal)).toBeUndefined();
    const first = await leases.create(spec, signal);
    expect(first.spec).toEqual(spec);
    await expect(leases.create(spec, signal)).rejects.toMatchObject({ status: 409 });
    await leases.update(first, { ...spec, holderIdentity: 'b' }, signal);
    await expect(leases.update(first, spec, signal)).rejects.toMatchObject({ status: 409 });
  });

  it('connects with the service account of a pod', async ({ skip }) => {
    const { clusters, users } = parse(await readFile(inject('kubeconfig'), 'utf8')) as {
      clusters: [{ cluster: { server: string; 'certificate-authority-data': string } }];
      users: [{ user: { token?: string } }];
    };
    const { token } = users[0].user;
    if (token === undefined) skip('the administrator of this cluster has no token');
    const { hostname, port } = new URL(clusters[0].cluster.server);
    const serviceAccount = await mkdtemp(join(tmpdir(), 'sluice-account-'));
    await writeFile(join(serviceAccount, 'token'), `${token}\n`);
    await writeFile(join(serviceAccount, 'namespace'), `${namespace}\n`);
    const authority = Buffer.from(clusters[0].cluster['certificate-authority-data'], 'base64');
    await writeFile(join(serviceAccount, 'ca.crt'), authority);
    const inPod = connect({ serviceAccount, serviceHost: hostname, servicePort: port });
    expect(inPod.namespace).toBe(namespace);
    expect(await inPod.get(NAMESPACES, { name: namespace })).toMatchObject({ metadata: { name: namespace } });
    await inPod.close();
    await rm(serviceAccount, { recursive: true });
  });

  it('counts the requests that RBAC refuses', async () => {
    const config = parse(await readFile(inject('kubeconfig'), 'utf8')) as { users: [{ user: object }] };
    Object.assign(config.users[0].user, { as: 'nobody' });
    const folder = await mkdtemp(join(tmpdir(), 'sluice-nobody-'));
    const kubeconfig = join(folder, 'kubeconfig');
    await writeFile(kubeconfig, JSON.stringify(config));
    const nobody = connect({ kubeconfig });
    await expect(nobody.get(SECRETS, { namespace, name: 'any' })).rejects.toMatchObject({ status: 403 });
    expect(nobody.refusals()).toBe(1);
    await expect(nobody.watch(SECRETS, { namespace }).next()).rejects.toMatchObject({ status: 403 });
    expect(nobody.refusals()).toBe(2);
    await nobody.close();
    await rm(folder, { recursive: true });
    await expect(client.create(NAMESPACES, { name: namespace }, {})).rejects.toMatchObject({ status: 409 });
    expect(client.refusals()).toBe(0);
  });

  it('is the user, with the groups and fields, that its kubeconfig impersonates', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'impersonation-'));
    const config = parse(await readFile(inject('kubeconfig'), 'utf8')) as { users: { user: object }[] };
    const as = {
      as: 'ada',
      'as-uid': '7',
      'as-groups': ['one', 'two'],
      'as-user-extra': { 'acme.com/team': ['a', 'b'] },
    };
    config.users = config.users.map(each => ({ ...each, user: { ...each.user, ...as } }));
    await writeFile(join(folder, 'config'), JSON.stringify(config));
    const other = connect({ kubeconfig: join(folder, 'config') });
    const resource: Resource = {
      group: 'authentication.k8s.io',
      version: 'v1',
      kind: 'SelfSubjectReview',
      plural: 'selfsubjectreviews',
      namespaced: false,
    };
    const { status } = await other.create<{ readonly status: object }>(resource, { name: '' }, {});
    expect(status).toEqual({
      userInfo: {
        username: 'ada',
        uid: '7',
        groups: ['one', 'two', 'system:authenticated'],
        extra: { 'acme.com/team': ['a', 'b'] },
      },
    });
    await other.close();
    await rm(folder, { recursive: true });
  });

  it('uses the same connection for consecutive calls', async () => {
    const single = connect({ kubeconfig: inject('kubeconfig') });
    for (let i = 0; i < 20; i++) await single.get(NAMESPACES, { name: 'default' });
    // undici treats a connection as busy for a short time after its response was read, so this may be a second
    // connection.
    expect(single.connectionsOpened()).toBeLessThanOrEqual(2);
    await single.close();
  });

  it('limits the connections of many concurrent calls', async () => {
    const busy = connect({ kubeconfig: inject('kubeconfig') });
    await Promise.all(Array.from({ length: 100 }, () => busy.get(NAMESPACES, { name: 'default' })));
    expect(busy.connectionsOpened()).toBeLessThanOrEqual(16);
    await busy.close();
  });
});

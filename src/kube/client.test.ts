import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, it, onTestFinished } from 'vitest';
import { formatKubeconfig } from '../../test/support/kubernetes/credentials.ts';
import { systemClock } from '../time/clock.ts';
import { connect, type KubeClient } from './client.ts';
import { createLeaseStore, type Lease } from './lease.ts';
import { LEASES, NAMESPACES, SECRETS } from './resource.ts';

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** A real HTTP server on loopback, a kubeconfig for it, and a client that does not wait between retries. */
async function serve(handler: Handler, user: object = { token: 'secret-token' }) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-client-'));
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', chunk => {
      body += chunk;
    });
    request.on('end', () => handler(request, response, body));
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const kubeconfig = join(folder, 'kubeconfig');
  const write = (credentials: object) =>
    writeFile(
      kubeconfig,
      formatKubeconfig({
        cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true },
        user: credentials,
        context: { namespace: 'home' },
      }),
    );
  await write(user);
  const clock = { ...systemClock, setTimer: (run: () => void) => systemClock.setTimer(run, 0) };
  const client: KubeClient = connect({ kubeconfig, clock });
  onTestFinished(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise(resolve => server.close(resolve));
    await rm(folder, { recursive: true });
  });
  return { client, write, folder };
}

const answer = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

const NAME = { name: 'n' };
const OBJECT = { metadata: { name: 'n', uid: 'u', resourceVersion: '1' } };

describe('client', () => {
  it('sends its token and reads its namespace', async () => {
    let authorization: string | undefined;
    const { client } = await serve((request, response) => {
      authorization = request.headers.authorization;
      answer(response, 200, OBJECT);
    });
    await client.get(NAMESPACES, NAME);
    expect(authorization).toBe('Bearer secret-token');
    expect(client.namespace).toBe('home');
  });

  it('treats a 404 as a missing object only if its body is a Status with the reason NotFound', async () => {
    let body = '{"kind": "Status", "reason": "NotFound"}';
    const { client } = await serve((_request, response) => response.writeHead(404).end(body));
    expect(await client.get(NAMESPACES, NAME)).toBeUndefined();
    expect(await client.remove(NAMESPACES, NAME)).toBe(false);
    // This is how a load balancer responds, or an API server that does not know the kind.
    body = '404 page not found';
    await expect(client.get(NAMESPACES, NAME)).rejects.toMatchObject({ status: 404 });
    await expect(client.remove(NAMESPACES, NAME)).rejects.toMatchObject({ status: 404 });
  });

  it('has no namespace if the context has none', async () => {
    const { folder } = await serve((_request, response) => answer(response, 200, OBJECT));
    const kubeconfig = join(folder, 'without-namespace');
    const text = await readFile(join(folder, 'kubeconfig'), 'utf8');
    await writeFile(kubeconfig, text.replace(',"namespace":"home"', ''));
    const other = connect({ kubeconfig, clock: systemClock });
    onTestFinished(() => other.close());
    expect(other.namespace).toBeUndefined();
  });

  it('uses separate connections for the Lease, even if other calls are waiting', async () => {
    const waiting: (() => void)[] = [];
    const isFull = Promise.withResolvers<void>();
    const { client } = await serve((request, response) => {
      if (request.url?.includes('/leases')) return answer(response, 200, { ...OBJECT, spec: { holderIdentity: 'me' } });
      // A slow server, which only responds after the request for the Lease has received a response.
      waiting.push(() => answer(response, 200, OBJECT));
      if (waiting.length === 16) isFull.resolve();
    });
    let answered = 0;
    const writes = Array.from({ length: 180 }, async () => {
      await client.apply(NAMESPACES, NAME, {}, { fieldManager: 'm' });
      answered++;
    });
    await isFull.promise;
    const leases = createLeaseStore(client, { namespace: 'system', name: 'leader' });
    const { signal } = new AbortController();
    const lease = await leases.get(signal);
    await leases.update(lease as Lease, {}, signal);
    expect(lease?.spec).toEqual({ holderIdentity: 'me' });
    expect(answered).toBe(0);
    while (answered < writes.length) {
      for (const respond of waiting.splice(0)) respond();
      await new Promise(resolve => setImmediate(resolve));
    }
    await Promise.all(writes);
  });

  it('sends the request again if the connection is lost', async () => {
    let calls = 0;
    const { client } = await serve((request, response) => {
      calls++;
      if (calls < 3) request.socket.destroy();
      else answer(response, 200, OBJECT);
    });
    expect(await client.apply(NAMESPACES, NAME, {}, { fieldManager: 'm' })).toEqual(OBJECT);
    expect(calls).toBe(3);
  });

  it('fails after three retries, with an error that does not contain a secret', async () => {
    let calls = 0;
    const { client } = await serve(request => {
      calls++;
      request.socket.destroy();
    });
    const error = await client.get(NAMESPACES, NAME).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ status: 0, reason: 'ConnectionFailed' });
    expect((error as Error).message).toMatch(/^GET \/api\/v1\/namespaces\/n: ConnectionFailed/);
    expect(JSON.stringify(error)).not.toContain('secret-token');
    expect(calls).toBe(4);
  });

  it('waits if the server requests this, and returns other refusals', async () => {
    const answers = [429, 503, 500, 200];
    let calls = 0;
    const { client } = await serve((_request, response) => {
      calls++;
      const status = answers.shift() ?? 409;
      answer(response, status, status === 200 ? OBJECT : {}, { 'retry-after': '1' });
    });
    expect(await client.apply(NAMESPACES, NAME, {}, { fieldManager: 'm' })).toEqual(OBJECT);
    await expect(client.get(NAMESPACES, NAME)).rejects.toMatchObject({ status: 409, retryAfterSeconds: 1 });
    expect(calls).toBe(5);
  });

  it.each([
    ['at most ten times, as client-go does', '1', undefined, 11],
    ['unless this exceeds the timeout', '3', 2_900, 1],
    ['unless this takes more than 5 s', '6', undefined, 1],
    ['but not without the header', undefined, undefined, 1],
  ])('waits %s', async (_how, header, timeoutMs, most) => {
    let calls = 0;
    const { client } = await serve((_request, response) => {
      calls++;
      answer(response, 503, {}, header === undefined ? {} : { 'retry-after': header });
    });
    await expect(client.get(NAMESPACES, NAME, { timeoutMs })).rejects.toMatchObject({ status: 503 });
    expect(calls).toBe(most);
  });

  it('only waits once for a Lease, so that the next attempt of its holder is not late and knows the error', async () => {
    let calls = 0;
    const { client } = await serve((_request, response) => {
      calls++;
      answer(response, 503, {}, { 'retry-after': '1' });
    });
    const leases = createLeaseStore(client, { namespace: 'system', name: 'leader' });
    await expect(leases.get(new AbortController().signal)).rejects.toMatchObject({ status: 503 });
    expect(calls).toBe(2);
  });

  it('counts lost connections separately', async () => {
    let calls = 0;
    const { client } = await serve((request, response) => {
      if (++calls < 6) answer(response, 503, {}, { 'retry-after': '1' });
      else if (calls < 9) request.socket.destroy();
      else answer(response, 200, OBJECT);
    });
    expect(await client.get(NAMESPACES, NAME)).toEqual(OBJECT);
  });

  it('reads its credentials again after a 401', async () => {
    const seen: (string | undefined)[] = [];
    const { client, write } = await serve((request, response) => {
      seen.push(request.headers.authorization);
      if (request.headers.authorization === 'Bearer new') answer(response, 200, OBJECT);
      else answer(response, 401, { kind: 'Status', reason: 'Unauthorized' });
    });
    await write({ token: 'new' });
    expect(await client.get(NAMESPACES, NAME)).toEqual(OBJECT);
    expect(seen).toEqual(['Bearer secret-token', 'Bearer new']);
    await write({ token: 'wrong' });
    expect(await client.get(NAMESPACES, NAME)).toEqual(OBJECT);
  });

  it('uses the token that an exec plugin prints', async () => {
    const credential = {
      apiVersion: 'client.authentication.k8s.io/v1',
      kind: 'ExecCredential',
      status: { token: 'x' },
    };
    let authorization: string | undefined;
    const { client } = await serve(
      (request, response) => {
        authorization = request.headers.authorization;
        answer(response, 200, OBJECT);
      },
      { exec: { apiVersion: credential.apiVersion, command: 'echo', args: [JSON.stringify(credential)] } },
    );
    await client.get(NAMESPACES, NAME);
    expect(authorization).toBe('Bearer x');
  });

  it('reports that an exec plugin has failed', async () => {
    const { client } = await serve((_request, response) => answer(response, 200, OBJECT), {
      exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'false', args: [] },
    });
    await expect(client.get(NAMESPACES, NAME)).rejects.toMatchObject({ status: 0, reason: 'CredentialsFailed' });
  });

  it('does not wait longer than its timeout for an exec plugin, which is only run once at a time', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-exec-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const runs = join(folder, 'runs');
    const { client } = await serve((_request, response) => answer(response, 200, OBJECT), {
      exec: { command: 'sh', args: ['-c', 'echo run >> "$0"; exec sleep 3', runs] },
    });
    const read = () => client.get(NAMESPACES, NAME, { timeoutMs: 200 });
    await expect(read()).rejects.toMatchObject({ status: 0, reason: 'CredentialsFailed' });
    await expect(read()).rejects.toMatchObject({ status: 0, reason: 'CredentialsFailed' });
    const stop = new AbortController();
    const watch = client.watch(NAMESPACES, { signal: stop.signal }).next();
    setTimeout(() => stop.abort(new Error('stopped')), 50);
    await expect(watch).rejects.toThrow('stopped');
    expect(await readFile(runs, 'utf8')).toBe('run\n');
  });

  it('runs an exec plugin once if many requests receive a 401', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-exec-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const runs = join(folder, 'runs');
    const plugin = `echo run >> "$0"; sleep 0.1; echo '{"status": {"token": "'$(wc -l < "$0")'"}}'`;
    const { client } = await serve(
      (request, response) => answer(response, request.headers.authorization === 'Bearer 1' ? 401 : 200, OBJECT),
      { exec: { command: 'sh', args: ['-c', plugin, runs] } },
    );
    await Promise.all(Array.from({ length: 8 }, () => client.get(NAMESPACES, NAME)));
    expect(await readFile(runs, 'utf8')).toBe('run\nrun\n');
  });

  it('starts a list again if it expires between two chunks', async () => {
    const paths: string[] = [];
    let expired = false;
    const { client } = await serve((request, response) => {
      const { searchParams } = new URL(request.url ?? '', 'http://x');
      paths.push(`${searchParams.get('limit')} ${searchParams.get('continue')} ${searchParams.get('resourceVersion')}`);
      if (!searchParams.has('continue')) {
        answer(response, 200, { metadata: { resourceVersion: '5', continue: 'next' }, items: [OBJECT] });
      } else if (!expired) {
        expired = true;
        answer(response, 410, { kind: 'Status', reason: 'Expired' });
      } else answer(response, 200, { metadata: { resourceVersion: '5' }, items: [OBJECT] });
    });
    const { items } = await client.list(NAMESPACES, () => 'projected');
    expect(items).toEqual(['projected', 'projected']);
    expect(paths).toEqual(['500 null null', '500 next null', '500 null null', '500 next null']);
  });

  it('reads compressed chunks and reports incomplete ones', async () => {
    const page = gzipSync(JSON.stringify({ metadata: { resourceVersion: '5' }, items: [OBJECT] }));
    let encodings: string | undefined;
    let body = page;
    const { client } = await serve((request, response) => {
      encodings = request.headers['accept-encoding'] as string | undefined;
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' }).end(body);
    });
    expect((await client.list(NAMESPACES, () => 'projected')).items).toEqual(['projected']);
    expect(encodings).toBe('gzip');
    body = page.subarray(0, -10);
    await expect(client.list(NAMESPACES, () => 'projected')).rejects.toMatchObject({ status: 0 });
  });

  it('accepts an empty list as written by Go', async () => {
    const { client } = await serve((_request, response) =>
      answer(response, 200, { metadata: { resourceVersion: '5' }, items: null }),
    );
    expect(await client.list(SECRETS, () => 1)).toEqual({ items: [], resourceVersion: '5' });
  });

  it('tries a watch once and requests bookmarks', async () => {
    const queries: string[] = [];
    const { client } = await serve((request, response) => {
      queries.push(request.url ?? '');
      answer(response, 503, {});
    });
    const watch = client.watch(SECRETS, { resourceVersion: '7', timeoutSeconds: 9, fieldSelector: 'type=a/b' });
    await expect(watch.next()).rejects.toMatchObject({ status: 503 });
    expect(queries).toHaveLength(1);
    expect(Object.fromEntries(new URL(queries[0] ?? '', 'http://x').searchParams)).toEqual({
      watch: '1',
      allowWatchBookmarks: 'true',
      resourceVersion: '7',
      timeoutSeconds: '9',
      fieldSelector: 'type=a/b',
    });
  });

  it('rejects with the reason of the caller’s signal', async () => {
    const { client } = await serve(() => {});
    const stop = new AbortController();
    const call = client.get(NAMESPACES, NAME, { signal: stop.signal });
    stop.abort(new Error('shutting down'));
    await expect(call).rejects.toThrow('shutting down');
  });

  it('cancels a call without a response', async () => {
    const { client } = await serve(() => {});
    await expect(client.get(NAMESPACES, NAME, { timeoutMs: 50 })).rejects.toMatchObject({ reason: 'Timeout' });
  });

  it('never sends a request to a collection because of an empty name or a missing namespace', async () => {
    let calls = 0;
    const { client } = await serve((_request, response) => {
      calls++;
      answer(response, 200, {});
    });
    await expect(client.remove(NAMESPACES, { name: '' })).rejects.toThrow('must not be empty');
    await expect(client.remove(LEASES, { name: 'x' })).rejects.toThrow('requires a namespace');
    expect(calls).toBe(0);
  });
});

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type RequestOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { KubeConfig } from '@kubernetes/client-node';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type Authority, createAuthority } from '../../../test/support/certificates.ts';
import { formatKubeconfig } from '../../../test/support/kubernetes/credentials.ts';
import { createAuthentication } from './authentication.ts';
import { openCredentials } from './credentials.ts';
import { readKubeContext } from './kubeconfig.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-credentials-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

function writeKubeconfig(user: object, cluster: object = {}): string {
  return write('config', formatKubeconfig({ cluster: { server: 'https://127.0.0.1:6443', ...cluster }, user }));
}

/** Returns all combinations with one alternative each. */
function combine(alternatives: readonly (readonly object[])[]): object[] {
  return alternatives.reduce<object[]>(
    (all, next) => all.flatMap(one => next.map(other => ({ ...one, ...other }))),
    [{}],
  );
}

function fileOrData(name: string): object[] {
  const file = { [name]: `${name}.pem` };
  const data = { [`${name}-data`]: Buffer.from(`data of ${name}`).toString('base64') };
  return [{}, file, data, { ...file, ...data }];
}

test('simple users are authenticated as by client-node', async () => {
  for (const name of ['certificate-authority', 'client-certificate', 'client-key'])
    write(`${name}.pem`, `file ${name}`);
  const clusters = combine([
    fileOrData('certificate-authority'),
    [{}, { 'insecure-skip-tls-verify': true }],
    [{}, { 'tls-server-name': 'kubernetes' }],
  ]);
  const users = combine([
    fileOrData('client-certificate'),
    fileOrData('client-key'),
    [{}, { token: 'abc' }, { token: 123 }],
    [{}, { username: 'ada', password: 'pw' }],
  ]);
  const pairs = [...users.map(user => [user, clusters.at(-1)]), ...clusters.map(cluster => [users.at(-1), cluster])];
  expect(pairs.length).toBeGreaterThan(100);
  for (const [user = {}, cluster = {}] of pairs) {
    const kubeconfig = writeKubeconfig(user, cluster);
    const context = readKubeContext({ kubeconfig });
    expect(context.user).not.toHaveProperty('kubeconfig');
    const config = new KubeConfig();
    config.loadFromFile(kubeconfig);
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, servername, rejectUnauthorized, auth } = options;
    const { Authorization } = (options.headers ?? {}) as Record<string, string>;
    const authorization = auth ? `Basic ${Buffer.from(auth).toString('base64')}` : Authorization;
    const { tls, headers } = await createAuthentication(context)();
    expect(tls, JSON.stringify([user, cluster])).toEqual({ ca, cert, key, servername, rejectUnauthorized });
    expect(headers).toEqual(authorization ? { authorization } : {});
  }
});

test('other users are authenticated by client-node', async () => {
  const status = { token: 'from-the-plugin', clientCertificateData: 'cert', clientKeyData: 'key' };
  const exec = { command: 'echo', args: [JSON.stringify({ kind: 'ExecCredential', status })] };
  const authenticate = (user: object) =>
    createAuthentication(readKubeContext({ kubeconfig: writeKubeconfig(user, { 'certificate-authority': 'ca' }) }))();
  write('ca', 'the ca');
  expect(await authenticate({ exec })).toEqual({
    tls: { ca: Buffer.from('the ca'), cert: 'cert', key: 'key' },
    headers: { authorization: 'Bearer from-the-plugin' },
  });
  expect((await authenticate({ exec, as: 'someone', 'as-groups': ['one', 'two'] })).headers).toEqual({
    authorization: 'Bearer from-the-plugin',
    'impersonate-user': 'someone',
    'impersonate-group': ['one', 'two'],
  });
  await expect(authenticate({ exec: { command: 'false' } })).rejects.toThrow();
});

test('a user can impersonate another one, as with kubectl', async () => {
  const authenticate = (user: object) =>
    createAuthentication(readKubeContext({ kubeconfig: writeKubeconfig(user, {}) }))();
  const tokenFile = write('impersonating', 'from-the-file\n');
  const extra = { 'acme.com/Project': ['a', 'b'] };
  expect((await authenticate({ tokenFile, as: 'someone', 'as-uid': '7', 'as-user-extra': extra })).headers).toEqual({
    authorization: 'Bearer from-the-file',
    'impersonate-user': 'someone',
    'impersonate-uid': '7',
    'impersonate-extra-acme.com%2fproject': ['a', 'b'],
  });
  expect(() => authenticate({ token: 't', 'as-groups': ['one'] })).toThrow(
    'user sluice: as-groups, as-uid, and as-user-extra need as, the name of the user to impersonate',
  );
});

describe('credentials', () => {
  function open(source: Parameters<typeof openCredentials>[0]) {
    let nowMs = 0;
    const credentials = openCredentials(source, () => nowMs);
    onTestFinished(credentials.close);
    return {
      credentials,
      pass: (ms: number) => {
        nowMs += ms;
      },
      authorization: async () => (await credentials.access()).headers.authorization,
    };
  }

  test('read the token of a service account again, without its newline', async () => {
    const token = write('token', 'first\n');
    write('ca.crt', 'ca');
    const { authorization, pass } = open({ serviceAccount: folder, serviceHost: 'h', servicePort: '1' });
    expect(await authorization()).toBe('Bearer first');
    write('token', 'second\n');
    expect(await authorization()).toBe('Bearer first');
    pass(10_000);
    expect(await authorization()).toBe('Bearer second');
    rmSync(token);
    pass(10_000);
    await expect(authorization()).rejects.toThrow('ENOENT');
    write('token', '');
    await expect(authorization()).rejects.toThrow('token is empty');
    write('token', 'third');
    expect(await authorization()).toBe('Bearer third');
  });

  test('read a token file immediately after a 401', async () => {
    write('token', 'first\n');
    const { authorization, credentials } = open({ kubeconfig: writeKubeconfig({ tokenFile: 'token' }) });
    expect(await authorization()).toBe('Bearer first');
    write('token', 'second\n');
    credentials.renew();
    expect(await authorization()).toBe('Bearer second');
  });

  test('use the token in a kubeconfig only while its token file cannot be read, as kubectl does', async () => {
    const { authorization, pass } = open({ kubeconfig: writeKubeconfig({ token: 'old', tokenFile: 'token' }) });
    expect(await authorization()).toBe('Bearer old');
    write('token', 'rotated\n');
    pass(10_000);
    expect(await authorization()).toBe('Bearer rotated');
    write('token', '');
    pass(10_000);
    expect(await authorization()).toBe('Bearer old');
  });

  test('are not replaced by those of an exec plugin that was started before', async () => {
    const plugin = (name: string, seconds: number) => {
      const status = { token: name, clientCertificateData: name, clientKeyData: name };
      return { exec: { command: 'sh', args: ['-c', `sleep ${seconds}; echo '${JSON.stringify({ status })}'`] } };
    };
    const { credentials } = open({ kubeconfig: writeKubeconfig(plugin('slow', 0.3)) });
    const slow = credentials.access();
    writeKubeconfig(plugin('quick', 0));
    credentials.renew();
    const { calls } = await credentials.access();
    expect((await slow).calls).toBe(calls);
    expect((await credentials.access()).calls).toBe(calls);
  });

  test('keep working if a kubeconfig is incomplete while it is written', async () => {
    const { authorization, credentials } = open({ kubeconfig: writeKubeconfig({ token: 'first' }) });
    write('config', '{"clusters": [');
    credentials.renew();
    expect(await authorization()).toBe('Bearer first');
    writeKubeconfig({ token: 'second' });
    credentials.renew();
    expect(await authorization()).toBe('Bearer second');
  });

  test('open new connections only when a certificate was replaced', async () => {
    write('ca.crt', 'first');
    const { credentials, pass } = open({ kubeconfig: writeKubeconfig({}, { 'certificate-authority': 'ca.crt' }) });
    const { calls } = await credentials.access();
    pass(10_000);
    expect((await credentials.access()).calls).toBe(calls);
    write('ca.crt', 'second');
    pass(10_000);
    expect((await credentials.access()).calls).not.toBe(calls);
  });

  test('use a replaced authority and client certificate for new connections', async () => {
    const [first, second] = [await createAuthority(folder, 'one'), await createAuthority(folder, 'two')] as const;
    const both = [readFileSync(first.ca), readFileSync(second.ca)];
    const optionsOf = async (authority: Authority, name: string) => {
      const { cert, key } = await authority.issue(name, 'IP:127.0.0.1');
      return { cert: readFileSync(cert), key: readFileSync(key), ca: both };
    };
    const server = createServer({ ...(await optionsOf(first, 'server-1')), requestCert: true }, (call, response) => {
      response.end((call.socket as TLSSocket).getPeerCertificate().subject.CN);
    });
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const place = async (authority: Authority, name: string) => {
      const { cert, key } = await authority.issue(name);
      for (const [from, to] of [
        [authority.ca, 'ca'],
        [cert, 'cert'],
        [key, 'key'],
      ] as const) {
        copyFileSync(from, join(folder, to));
      }
    };
    await place(first, 'client-1');
    const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const cluster = { server: address, 'certificate-authority': 'ca' };
    const kubeconfig = writeKubeconfig({ 'client-certificate': 'cert', 'client-key': 'key' }, cluster);
    const { credentials, pass } = open({ kubeconfig });
    const ask = async () => {
      const { calls, watches } = await credentials.access();
      const answers = [calls, watches, watches].map(dispatcher => request(address, { dispatcher }));
      return new Set(await Promise.all(answers.map(async answer => (await answer).body.text())));
    };
    expect(await ask()).toEqual(new Set(['client-1']));
    server.setSecureContext(await optionsOf(second, 'server-2'));
    await place(second, 'client-2');
    pass(10_000);
    expect(await ask()).toEqual(new Set(['client-2']));
  });
});

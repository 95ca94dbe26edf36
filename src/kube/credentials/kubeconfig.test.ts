import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { readKubeContext } from './kubeconfig.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-kubeconfig-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const SERVER = 'https://10.0.0.1:6443';

/** A kubeconfig with the context `x`, the cluster `c` and the user `u`. */
function kubeconfigOf({ cluster = {}, user = {}, context = {}, ...rest }: Readonly<Record<string, object>> = {}) {
  return {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server: SERVER, ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', ...context } }],
    'current-context': 'x',
    ...rest,
  };
}

function write(name: string, content: unknown): string {
  const path = join(folder, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : stringify(content));
  return path;
}

const read = (content: unknown) => readKubeContext({ kubeconfig: write('config', content) });

describe('a kubeconfig', () => {
  test('contains the server, namespace, certificates, and tokens, with paths relative to its folder', () => {
    const cluster = {
      server: `${SERVER}/prefix//`,
      'certificate-authority': 'pki/ca.crt',
      'insecure-skip-tls-verify': true,
      'tls-server-name': 'kubernetes',
      'proxy-url': 'http://proxy:3128',
      extensions: [{ name: 'minikube' }],
    };
    const user = {
      'client-certificate': '/abs/tls.crt',
      'client-key': '../tls.key',
      tokenFile: 'token',
      username: 'ada',
      password: 'pw',
    };
    expect(read(kubeconfigOf({ cluster, user, context: { namespace: 'home' } }))).toEqual({
      server: `${SERVER}/prefix`,
      namespace: 'home',
      ca: { file: join(folder, 'pki/ca.crt') },
      skipTlsVerify: true,
      tlsServerName: 'kubernetes',
      proxy: 'http://proxy:3128',
      user: {
        cert: { file: '/abs/tls.crt' },
        key: { file: join(folder, '../tls.key') },
        tokenFile: join(folder, 'token'),
        username: 'ada',
        password: 'pw',
      },
    });
  });

  test('can contain data instead of files, and a token that looks like a number', () => {
    const cluster = { 'certificate-authority-data': 'Y2E=' };
    const user = { 'client-certificate-data': 'Y2VydA==', 'client-key-data': 'a2V5', token: 12_345, exec: null };
    expect(read(kubeconfigOf({ cluster, user }))).toEqual({
      server: SERVER,
      namespace: undefined,
      ca: { data: 'Y2E=' },
      skipTlsVerify: false,
      user: { cert: { data: 'Y2VydA==' }, key: { data: 'a2V5' }, token: '12345' },
    });
  });

  test('can have a context without a user', () => {
    expect(read(kubeconfigOf({ context: { user: null as never } })).user).toEqual({});
  });

  test.each([
    { exec: { command: 'aws', args: ['token'] } },
    { 'auth-provider': { name: 'oidc', config: {} } },
    { token: 't', 'a-field-of-tomorrow': true },
  ])('requires client-node for a user with other fields than values and files: %o', user => {
    const all = { ...user, 'client-key': 'tls.key' };
    const context = read(kubeconfigOf({ cluster: { 'certificate-authority': 'ca.crt' }, user: all }));
    const given = JSON.parse((context.user as { kubeconfig: string }).kubeconfig) as Record<string, unknown>;
    expect(given).toMatchObject({
      clusters: [{ cluster: { server: SERVER, 'certificate-authority': join(folder, 'ca.crt') } }],
      users: [{ user: { ...user, 'client-key': join(folder, 'tls.key') } }],
    });
  });

  test.each([
    ['has no current context', { 'current-context': '' as never }, 'does not contain a current context'],
    ['lacks the context', { contexts: [] }, 'does not contain the context x'],
    ['lacks the cluster', { clusters: [] }, 'does not contain the cluster c'],
    ['lacks the user', { users: [] }, 'does not contain the user u'],
    ['has a context without a cluster', { context: { cluster: '' } }, 'a cluster for the context x'],
    ['has no server', { cluster: { server: null } }, 'cluster c: server must be a URL'],
    ['has a server without scheme', { cluster: { server: 'localhost:6443' } }, 'cluster c: server must be a URL'],
    ['has a server without TLS', { cluster: { server: 'http://10.0.0.1' } }, 'needs insecure-skip-tls-verify'],
    ['has a SOCKS proxy', { cluster: { 'proxy-url': 'socks5://proxy' } }, 'only HTTP proxies'],
  ])('that %s is refused', (_, change, message) => {
    expect(() => read(kubeconfigOf(change as Record<string, object>))).toThrow(message);
    expect(() => read(kubeconfigOf(change as Record<string, object>))).toThrow(join(folder, 'config'));
  });

  test('that is missing, empty, or not YAML is reported without its content', () => {
    expect(() => readKubeContext({ kubeconfig: join(folder, 'away') })).toThrow(
      /^cannot read the kubeconfig .*away: ENOENT/,
    );
    expect(() => read('')).toThrow(/^the kubeconfig .*config is not valid YAML: expected a document/);
    expect(() => read('just text')).toThrow('does not contain a current context');
    const thrown = (() => {
      try {
        return read('users:\n- token: secret-token\n  [broken');
      } catch (error) {
        return error as Error;
      }
    })() as Error;
    expect(thrown.message).toMatch(/config is not valid YAML: .* in line \d$/);
    expect(`${thrown.stack} ${String(thrown.cause)}`).not.toContain('secret-token');
  });

  test('can consist of several files: the first definition of a name is used, and missing files are skipped', () => {
    const user = { tokenFile: 'token' };
    const one = write('one/config', { ...kubeconfigOf({ user }), clusters: [] });
    const two = write(
      'two/config',
      kubeconfigOf({ user: { token: 'no' }, cluster: { 'certificate-authority': 'ca' } }),
    );
    const kubeconfig = [join(folder, 'away'), one, '', two].join(':');
    expect(readKubeContext({ kubeconfig })).toMatchObject({
      server: SERVER,
      ca: { file: join(folder, 'two/ca') },
      user: { tokenFile: join(folder, 'one/token') },
    });
    expect(() => readKubeContext({ kubeconfig: '/away/1:/away/2' })).toThrow('/away/1: ENOENT');
    const colon = write('with:colon', kubeconfigOf());
    expect(readKubeContext({ kubeconfig: colon }).server).toBe(SERVER);
  });
});

describe('without a kubeconfig', () => {
  const inPod = () => {
    write('account/token', 'token-of-the-pod\n');
    write('account/namespace', 'sluice-system\n');
    return { serviceAccount: join(folder, 'account'), serviceHost: '10.96.0.1', servicePort: '443' };
  };

  test('the service account of the pod is used', () => {
    expect(readKubeContext({ kubeconfig: '', home: folder, ...inPod() })).toEqual({
      server: 'https://10.96.0.1:443',
      namespace: 'sluice-system',
      ca: { file: join(folder, 'account/ca.crt') },
      user: { tokenFile: join(folder, 'account/token') },
    });
  });

  test('an IPv6 address is put in brackets, and a host name is not', () => {
    const serverOf = (serviceHost: string) => readKubeContext({ ...inPod(), serviceHost }).server;
    expect(serverOf('fd00::1')).toBe('https://[fd00::1]:443');
    expect(serverOf('kubernetes.default.svc')).toBe('https://kubernetes.default.svc:443');
  });

  test('a pod without a namespace file has no namespace', () => {
    const pod = inPod();
    rmSync(join(folder, 'account/namespace'));
    expect(readKubeContext(pod).namespace).toBeUndefined();
  });

  test('a pod that does not know the API server is refused', () => {
    expect(() => readKubeContext({ ...inPod(), serviceHost: undefined })).toThrow('KUBERNETES_SERVICE_HOST');
  });

  test('uses the kubeconfig in the home folder first', () => {
    write('.kube/config', kubeconfigOf({ cluster: { 'certificate-authority': 'ca' } }));
    const context = readKubeContext({ home: folder, ...inPod() });
    expect(context).toMatchObject({ server: SERVER, ca: { file: join(folder, '.kube/ca') } });
  });

  test('explains what to set if there is no pod', () => {
    const serviceAccount = join(folder, 'account');
    expect(() => readKubeContext({ home: folder, serviceAccount })).toThrow('Set KUBECONFIG');
  });
});

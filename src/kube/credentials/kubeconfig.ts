import { existsSync, readFileSync } from 'node:fs';
import { delimiter, dirname, join, resolve } from 'node:path';
import { load, YAMLException } from 'js-yaml';
import { findServiceAccount } from './service-account.ts';

/** The settings for finding the API server. */
export interface KubeSource {
  /** The path of a kubeconfig, or several paths separated by `:`. */
  readonly kubeconfig?: string | undefined;
  /** Home folder. If `kubeconfig` is not set, we will look for `.kube/config` in this folder. */
  readonly home?: string | undefined;
  /** Host name or IP address that Kubernetes sets in a pod as `KUBERNETES_SERVICE_HOST`. */
  readonly serviceHost?: string | undefined;
  /** Port that Kubernetes sets in a pod as `KUBERNETES_SERVICE_PORT`. */
  readonly servicePort?: string | undefined;
  /** The folder that contains the service account. Defaults to the folder mounted by Kubernetes. */
  readonly serviceAccount?: string;
}

/** Either the path of a file, which is read again whenever it is used, or the content in base64. */
export type Material = { readonly file: string } | { readonly data: string };

/** A user with credentials that are either values or files. Requests are anonymous if there are no credentials. */
export interface PlainUser {
  readonly cert?: Material | undefined;
  readonly key?: Material | undefined;
  /** Only used if `tokenFile` is not set or can't be read. */
  readonly token?: string | undefined;
  /** Path. */
  readonly tokenFile?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** User whose credentials come from elsewhere, such as an exec plugin. */
export interface OtherUser {
  /** A kubeconfig as JSON, with a single context and absolute paths. */
  readonly kubeconfig: string;
}

/** A header with several values is sent several times. */
export type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Cluster, user, and namespace of the current context. */
export interface KubeContext {
  /** The server URL in the format `https://host:port`, without a trailing slash. */
  readonly server: string;
  /** Undefined if neither the context nor the service account has a namespace. */
  readonly namespace: string | undefined;
  readonly ca?: Material | undefined;
  readonly skipTlsVerify?: boolean;
  readonly tlsServerName?: string | undefined;
  /** The URL of the HTTP proxy to use. */
  readonly proxy?: string | undefined;
  readonly user: PlainUser | OtherUser;
  /** The headers that impersonate another user. The names are in lowercase. */
  readonly impersonation?: Headers | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

/** Everything that {@link PlainUser} covers. A user with any other field is an {@link OtherUser}. */
const PLAIN = new Set([
  'client-certificate',
  'client-certificate-data',
  'client-key',
  'client-key-data',
  'token',
  'tokenFile',
  'username',
  'password',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
]);

const PATHS = ['certificate-authority', 'client-certificate', 'client-key', 'tokenFile'];

/**
 * Reads the current context. Like kubectl, this will first try `kubeconfig`, then the default kubeconfig of the user,
 * and then the service account of the pod.
 *
 * @throws if there is no context, or if it can't be used. The message will not contain any credentials.
 */
export function readKubeContext(source: KubeSource): KubeContext {
  if (source.kubeconfig) return parseContext(source.kubeconfig, readFiles(source.kubeconfig));
  const standard = join(source.home ?? '', '.kube', 'config');
  if (source.home && existsSync(standard)) return parseContext(standard, [readKubeconfig(standard)]);
  const inPod = findServiceAccount(source);
  if (inPod !== undefined) return inPod;
  throw new Error('no kubeconfig and no service account found. Set KUBECONFIG or run in a pod with a service account');
}

/** Reads one or more files. With several files, missing files are skipped. */
function readFiles(paths: string): Fields[] {
  if (!paths.includes(delimiter) || existsSync(paths)) return [readKubeconfig(paths)];
  const files = paths.split(delimiter).filter(path => path !== '');
  const existing = files.filter(path => existsSync(path));
  return (existing.length > 0 ? existing : files).map(readKubeconfig);
}

/** Reads a file and converts its paths to absolute paths. */
function readKubeconfig(path: string): Fields {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new Error(`cannot read the kubeconfig ${path}: ${(cause as Error).message}`, { cause });
  }
  const parsed = parseYaml(path, text);
  const folder = dirname(path);
  return {
    ...parsed,
    clusters: listOf(parsed.clusters).map(each => ({ ...each, cluster: withAbsolutePaths(each.cluster, folder) })),
    users: listOf(parsed.users).map(each => ({ ...each, user: withAbsolutePaths(each.user, folder) })),
  };
}

function parseYaml(path: string, text: string): Fields {
  try {
    return fieldsOf(load(text));
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    // The message and the cause can't be used, because they quote the lines around the error, which may contain a
    // token.
    const where = error.mark === undefined ? '' : ` in line ${error.mark.line + 1}`;
    throw new Error(`the kubeconfig ${path} is not valid YAML: ${error.reason}${where}`);
  }
}

function withAbsolutePaths(value: unknown, folder: string): Fields {
  const entries = Object.entries(fieldsOf(value)).map(([name, each]) => {
    const path = PATHS.includes(name) ? text(each) : undefined;
    return [name, path === undefined ? each : resolve(folder, path)];
  });
  return Object.fromEntries(entries);
}

/** Looks up the current context. If several files define the same name, the first one counts, like for kubectl. */
function parseContext(paths: string, files: readonly Fields[]): KubeContext {
  const the = `the kubeconfig ${paths}`;
  const find = (list: 'contexts' | 'clusters' | 'users', field: string, name: string): Fields => {
    const found = files.flatMap(file => listOf(file[list])).find(each => each.name === name);
    if (found !== undefined) return fieldsOf(found[field]);
    throw new Error(`${the} does not contain the ${field} ${name}, which its current context uses`);
  };
  const current = files.map(file => text(file['current-context'])).find(Boolean);
  if (current === undefined)
    throw new Error(`${the} does not contain a current context. Set one with kubectl config use-context`);
  const context = find('contexts', 'context', current);
  const clusterName = text(context.cluster);
  if (clusterName === undefined) throw new Error(`${the} does not contain a cluster for the context ${current}`);
  const cluster = find('clusters', 'cluster', clusterName);
  const userName = text(context.user);
  const user = userName === undefined ? {} : find('users', 'user', userName);
  return {
    ...parseCluster(`${the}, cluster ${clusterName}`, cluster),
    namespace: text(context.namespace)?.trim() || undefined,
    user: isPlain(user) ? parseUser(user) : { kubeconfig: singleContext(cluster, user) },
    impersonation: parseImpersonation(`${the}, user ${userName}`, user),
  };
}

function parseCluster(the: string, cluster: Fields): Omit<KubeContext, 'namespace' | 'user'> {
  const server = text(cluster.server)?.replace(/\/+$/, '');
  if (server === undefined || !/^https?:$/.test(URL.parse(server)?.protocol ?? ''))
    throw new Error(`${the}: server must be a URL such as https://10.0.0.1:6443`);
  const proxy = text(cluster['proxy-url']);
  if (proxy !== undefined && !/^https?:$/.test(URL.parse(proxy)?.protocol ?? ''))
    throw new Error(`${the}: only HTTP proxies to the API server are supported`);
  const skipTlsVerify = cluster['insecure-skip-tls-verify'] === true;
  if (server.startsWith('http:') && proxy === undefined && !skipTlsVerify)
    throw new Error(`${the}: a server without TLS needs insecure-skip-tls-verify: true`);
  return {
    server,
    proxy,
    skipTlsVerify,
    ca: materialOf(cluster, 'certificate-authority'),
    tlsServerName: text(cluster['tls-server-name']),
  };
}

function isPlain(user: Fields): boolean {
  return Object.entries(user).every(([name, value]) => PLAIN.has(name) || value === null);
}

function parseUser(user: Fields): PlainUser {
  return {
    cert: materialOf(user, 'client-certificate'),
    key: materialOf(user, 'client-key'),
    token: text(user.token),
    tokenFile: text(user.tokenFile),
    username: text(user.username),
    password: text(user.password),
  };
}

/** Returns the same headers as client-go. client-node only supports `as`. */
function parseImpersonation(the: string, user: Fields): Headers | undefined {
  const name = text(user.as);
  const uid = text(user['as-uid']);
  const groups = textsOf(user['as-groups']);
  const extra = Object.entries(fieldsOf(user['as-user-extra']));
  if (name === undefined) {
    if (uid === undefined && groups.length + extra.length === 0) return undefined;
    throw new Error(`${the}: as-groups, as-uid, and as-user-extra need as, the name of the user to impersonate`);
  }
  return {
    'impersonate-user': name,
    ...(uid === undefined ? {} : { 'impersonate-uid': uid }),
    ...(groups.length === 0 ? {} : { 'impersonate-group': groups }),
    ...Object.fromEntries(
      extra.map(([key, values]) => [`impersonate-extra-${encodeURIComponent(key).toLowerCase()}`, textsOf(values)]),
    ),
  };
}

function textsOf(values: unknown): string[] {
  return (Array.isArray(values) ? values : []).flatMap(each => text(each) ?? []);
}

function singleContext(cluster: Fields, user: Fields): string {
  const name = 'sluice';
  return JSON.stringify({
    clusters: [{ name, cluster }],
    users: [{ name, user }],
    contexts: [{ name, context: { cluster: name, user: name } }],
    'current-context': name,
  });
}

/** Returns the file if both a file and data are set. */
function materialOf(fields: Fields, name: string): Material | undefined {
  const file = text(fields[name]);
  if (file !== undefined) return { file };
  const data = text(fields[`${name}-data`]);
  return data === undefined ? undefined : { data };
}

/** Returns a value as text. Empty values are ignored. YAML reads a token of digits as a number. */
function text(value: unknown): string | undefined {
  if (typeof value === 'number') return `${value}`;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? (value as Fields) : {};
}

function listOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

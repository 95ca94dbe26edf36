import type { RequestOptions } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, buildConnector, type Dispatcher, ProxyAgent } from 'undici';

/** Watches hold one connection each; other calls share at most this many. */
const CALL_CONNECTIONS = 16;

/** Connections for the Lease. One is enough; the second replaces one that hangs. */
const LEASE_CONNECTIONS = 2;

/** The connections to the API server, by use. */
export type Dispatchers = {
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** A leader must be able to renew its Lease while all its workers wait for a slow API server. */
  readonly leases: Dispatcher;
};

/** How long credentials are reused, ms. client-node reads certificate and token files each time. */
const FRESH_MS = 10_000;

/** Address of the API server, and the credentials for it. */
export type Access = Dispatchers & { readonly headers: Readonly<Record<string, string>> };

export type Credentials = {
  /** `https://host:port`, without a path's trailing slash. */
  readonly server: string;
  /** Namespace of the current context or, in a pod, its own. */
  readonly namespace: string;
  readonly access: () => Promise<Access>;
  /** Reads the kubeconfig and all files that it names again, after a 401. */
  readonly renew: () => void;
  /** TLS connections opened so far, for metrics and tests. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

/**
 * Follows a kubeconfig: tokens, token files, client certificates, exec plugins (all through client-node), and the
 * service account in a pod. All calls share the connections: client-node itself would open a TLS connection for each.
 *
 * @param kubeconfig path; absent: `KUBECONFIG`, the user's default, then the service account, as kubectl does
 * @throws when no cluster can be found, or for a proxy that is not HTTP
 */
export function openCredentials(kubeconfig: string | undefined, nowMs: () => number): Credentials {
  let config = load(kubeconfig);
  const cluster = config.getCurrentCluster();
  if (cluster === null) throw new Error('the kubeconfig does not contain a current cluster');
  let material = '';
  let dispatchers: Dispatchers | undefined;
  let current: { readonly access: Promise<Access>; readonly untilMs: number } | undefined;
  let opened = 0;

  async function read(): Promise<Access> {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const tls = { ca, cert, key, servername, rejectUnauthorized };
    const proxy = config.getCurrentCluster()?.proxyUrl;
    const fingerprint = JSON.stringify([tls, proxy]);
    if (dispatchers === undefined || fingerprint !== material) {
      // Calls on the old connections end on their own, watches within their timeout.
      const old = dispatchers;
      dispatchers = createDispatchers(defined(tls), proxy, () => opened++);
      material = fingerprint;
      for (const each of Object.values(old ?? {})) void each.close();
    }
    const headers: Record<string, string> = {};
    // A token file may end in a newline, which is not valid in a header.
    for (const [name, value] of Object.entries(options.headers ?? {}))
      headers[name.toLowerCase()] = String(value).trim();
    if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    return { headers, ...dispatchers };
  }

  return {
    server: cluster.server.replace(/\/+$/, ''),
    namespace: config.getContextObject(config.getCurrentContext())?.namespace ?? 'default',
    access: () => {
      if (current === undefined || nowMs() >= current.untilMs) {
        const access = read();
        current = { access, untilMs: nowMs() + FRESH_MS };
        // A failure, e.g. of an exec plugin, fails only this call; the next one retries.
        access.catch(() => {
          if (current?.access === access) current = undefined;
        });
      }
      return current.access;
    },
    renew: () => {
      current = undefined;
      try {
        config = load(kubeconfig);
      } catch {
        // The file may be half-written: keep the one in memory, and read it again after the next 401.
      }
    },
    connectionsOpened: () => opened,
    close: async () => {
      await Promise.all(Object.values(dispatchers ?? {}).map(each => each.destroy()));
    },
  };
}

function load(path: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (path === undefined) config.loadFromDefault();
  else config.loadFromFile(path);
  return config;
}

function defined<T extends object>(options: T): { [K in keyof T]?: NonNullable<T[K]> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null)) as {
    [K in keyof T]?: NonNullable<T[K]>;
  };
}

function createDispatchers(
  tls: Record<string, unknown>,
  proxy: string | undefined,
  onConnection: () => void,
): Dispatchers {
  if (proxy !== undefined && !/^https?:/.test(proxy))
    throw new Error('only HTTP proxies to the API server are supported');
  const create = (connections: number | null): Dispatcher => {
    // HTTP/1.1: a connection that dies silently fails one call, not all.
    const pool = { allowH2: false, keepAliveTimeout: 30_000, connections };
    if (proxy !== undefined) return new ProxyAgent({ ...pool, uri: proxy, requestTls: tls });
    const connect = buildConnector({
      ...tls,
      allowH2: false,
      timeout: 10_000,
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
    });
    return new Agent({
      ...pool,
      connect: (options, callback) => {
        connect(options, (...[error, socket]: [Error | null, unknown]) => {
          if (error !== null) return callback(error, null);
          onConnection();
          return callback(null, socket as TLSSocket);
        });
      },
    });
  };
  return { calls: create(CALL_CONNECTIONS), watches: create(null), leases: create(LEASE_CONNECTIONS) };
}

import type { RequestOptions } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { KubeConfig } from '@kubernetes/client-node';
import { Agent, buildConnector, type Dispatcher, ProxyAgent } from 'undici';

/**
 * The maximum number of connections that are shared by all requests. Watches are not included because each watch uses a
 * separate connection.
 */
const CALL_CONNECTIONS = 16;

/** The number of connections for the Lease. The second connection is used if the first one hangs. */
const LEASE_CONNECTIONS = 2;

/** The connections to the API server, grouped by their purpose. */
export type Dispatchers = {
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** The leader must be able to renew its Lease even if all workers are waiting for a slow API server. */
  readonly leases: Dispatcher;
};

/**
 * The time for which credentials are cached, in milliseconds. This avoids reading the certificate and token files for
 * each request.
 */
const FRESH_MS = 10_000;

/** The connections to the API server and the headers that are required to authenticate. */
export type Access = Dispatchers & { readonly headers: Readonly<Record<string, string>> };

export type Credentials = {
  /** The URL of the server in the form `https://host:port`, without a trailing slash. */
  readonly server: string;
  /** The namespace of the current context. In a pod, this is the namespace of the pod. */
  readonly namespace: string;
  readonly access: () => Promise<Access>;
  /** Reads the kubeconfig and all files that it refers to again. This is called after a 401 response. */
  readonly renew: () => void;
  /** Returns the number of TLS connections that have been opened so far. It is used for metrics and in tests. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

/**
 * Loads the credentials from a kubeconfig or from the service account of a pod. Tokens, token files, client
 * certificates and exec plugins are handled by client-node. All requests share the same connections, because
 * client-node would open a new TLS connection for each request.
 *
 * @param kubeconfig the path of the kubeconfig. If this is not set, `KUBECONFIG`, the default path of the user and the
 * service account are used, as in kubectl.
 * @throws if a cluster cannot be found, or if the proxy is not an HTTP proxy
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
      // Requests on the old connections are allowed to finish. Watches end after their timeout.
      const old = dispatchers;
      dispatchers = createDispatchers(defined(tls), proxy, () => opened++);
      material = fingerprint;
      for (const each of Object.values(old ?? {})) void each.close();
    }
    const headers: Record<string, string> = {};
    // A token file may end with a newline, which is not allowed in a header.
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
        // If this fails, for example because of an exec plugin, only the current request fails. The next request tries
        // again.
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
        // The file may have been written only partially, so we keep the configuration that is in memory. The file is
        // read again after the next 401 response.
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
    // We use HTTP/1.1 so that only one request fails if a connection is lost without being closed.
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

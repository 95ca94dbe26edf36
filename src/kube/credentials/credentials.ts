import type { TLSSocket } from 'node:tls';
import { Agent, buildConnector, type Dispatcher, ProxyAgent } from 'undici';
import { createAuthentication } from './authentication.ts';
import { type KubeSource, readKubeContext } from './kubeconfig.ts';

/** Maximum number of connections shared by all requests, not counting watches. Each watch uses its own connection. */
const CALL_CONNECTIONS = 16;

/** Number of connections for the Lease. There is a second one in case the first one hangs. */
const LEASE_CONNECTIONS = 2;

/** Connections to the API server, by purpose. */
export type Dispatchers = {
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** The leader needs to renew its Lease even while all workers are waiting for a slow API server. */
  readonly leases: Dispatcher;
};

/**
 * How long to cache credentials, in milliseconds. Saves us from reading certificate and token files on every request.
 */
const FRESH_MS = 10_000;

/** Connections to the API server, along with the headers needed to authenticate. */
export type Access = Dispatchers & { readonly headers: Readonly<Record<string, string>> };

export type Credentials = {
  /** Server URL of the form `https://host:port`, without a trailing slash. */
  readonly server: string;
  /** Namespace of the current context or, in a pod, the pod's namespace. Undefined if the context doesn't have one. */
  readonly namespace: string | undefined;
  readonly access: () => Promise<Access>;
  /** Reads the kubeconfig and any files it refers to again. Called after a 401 response. */
  readonly renew: () => void;
  /** Returns the number of TLS connections opened so far, for use in metrics and tests. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

/**
 * Opens the credentials of a kubeconfig or a pod's service account. All requests share connections.
 *
 * @throws if there are no credentials, or if they are not usable
 */
export function openCredentials(source: KubeSource, nowMs: () => number): Credentials {
  let context = readKubeContext(source);
  const { server, namespace } = context;
  let authenticate = createAuthentication(context);
  let material = '';
  let dispatchers: Dispatchers | undefined;
  let current: { readonly access: Promise<Access>; readonly untilMs: number } | undefined;
  let opened = 0;

  async function read(): Promise<Access> {
    const { proxy } = context;
    const { tls, headers } = await authenticate();
    const fingerprint = JSON.stringify([tls, proxy]);
    if (dispatchers === undefined || fingerprint !== material) {
      // Let requests on the old connections finish. Watches will end after their timeout.
      const old = dispatchers;
      dispatchers = createDispatchers(tls, proxy, () => opened++);
      material = fingerprint;
      for (const each of Object.values(old ?? {})) void each.close();
    }
    return { headers, ...dispatchers };
  }

  return {
    server,
    namespace,
    access: () => {
      if (current === undefined || nowMs() >= current.untilMs) {
        const access = read();
        current = { access, untilMs: nowMs() + FRESH_MS };
        // If this fails, e.g. because of an exec plugin, only the current request is affected. The next one will try
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
        context = readKubeContext(source);
        authenticate = createAuthentication(context);
      } catch {
        // The file might only be partially written, so we keep using the configuration in memory. After the next 401
        // response, the file will be read again.
      }
    },
    connectionsOpened: () => opened,
    close: async () => {
      await Promise.all(Object.values(dispatchers ?? {}).map(each => each.destroy()));
    },
  };
}

function createDispatchers(
  tls: Readonly<Record<string, unknown>>,
  proxy: string | undefined,
  onConnection: () => void,
): Dispatchers {
  const create = (connections: number | null): Dispatcher => {
    // With HTTP/1.1, losing a connection that isn't closed will only affect one request.
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

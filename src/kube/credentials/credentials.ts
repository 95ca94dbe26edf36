import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { Agent, buildConnector, type Dispatcher, Pool, ProxyAgent } from 'undici';
import { withDeadline } from '../../time/deadline.ts';
import { createAuthentication } from './authentication.ts';
import { type Headers, type KubeSource, readKubeContext } from './kubeconfig.ts';

/**
 * The maximum number of connections shared by all requests, not counting watches. Each watch uses a separate
 * connection.
 */
const CALL_CONNECTIONS = 16;

/** The number of connections to use for the Lease. The second connection is used if the first connection hangs. */
const LEASE_CONNECTIONS = 2;

/** The time to wait for the API server or a proxy when opening a connection, in milliseconds. */
const CONNECT_WITHIN_MS = 10_000;

/** The connections to the API server, for each purpose. */
export type Dispatchers = {
  readonly calls: Dispatcher;
  readonly watches: Dispatcher;
  /** Even while all workers are waiting for a slow API server, the leader must be able to renew its Lease. */
  readonly leases: Dispatcher;
};

/**
 * The time for which credentials are cached, in milliseconds. The cache avoids reading certificate and token files on
 * every request.
 */
const FRESH_MS = 10_000;

/** The timeout for an exec plugin, in milliseconds. The plugin is not stopped, but run again. */
const READ_WITHIN_MS = 60_000;

/** Connections to the API server, along with the headers needed to authenticate. */
export type Access = Dispatchers & { readonly headers: Headers };

export type Credentials = {
  /** The server URL in the format `https://host:port`, without a trailing slash. */
  readonly server: string;
  /**
   * The namespace of the current context. In a pod, this is the pod's namespace. Undefined if the context does not
   * have a namespace.
   */
  readonly namespace: string | undefined;
  readonly access: () => Promise<Access>;
  /** Reads the kubeconfig again, including all referenced files. Should be called when the response was a 401. */
  readonly renew: () => void;
  /** Returns the number of TLS connections opened so far. Used for metrics and tests. */
  readonly connectionsOpened: () => number;
  readonly close: () => Promise<void>;
};

/**
 * Opens the credentials of a kubeconfig, or of the pod's service account. The connections are shared by all requests.
 *
 * @throws if there are no credentials, or if they can't be used
 */
export function openCredentials(source: KubeSource, nowMs: () => number): Credentials {
  let context = readKubeContext(source);
  const { server, namespace } = context;
  let authenticate = createAuthentication(context);
  let material = '';
  let dispatchers: Dispatchers | undefined;
  let current: { readonly access: Promise<Access>; readonly isRenewal: boolean; untilMs: number } | undefined;
  /** True if the last credentials have been refused. */
  let isRefused = false;
  let reads = 0;
  let opened = 0;

  async function read(): Promise<Access> {
    const { proxy } = context;
    const number = ++reads;
    const { tls, headers } = await withDeadline(READ_WITHIN_MS, authenticate);
    const fingerprint = JSON.stringify([tls, proxy]);
    // An exec plugin may end after a later one.
    const isLatest = number === reads;
    if (dispatchers === undefined || (fingerprint !== material && isLatest)) {
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
        // While an exec plugin is running, all requests wait for it.
        const reading = { access: read(), isRenewal: isRefused, untilMs: Number.POSITIVE_INFINITY };
        current = reading;
        isRefused = false;
        reading.access.then(
          () => {
            reading.untilMs = nowMs() + FRESH_MS;
          },
          () => {
            // If this fails, e.g. because of an exec plugin, only the current requests are affected. We will retry
            // for the next one.
            if (current === reading) current = undefined;
          },
        );
      }
      return current.access;
    },
    renew: () => {
      // All requests in progress are refused, and an exec plugin should only be run once.
      if (current?.isRenewal === true && current.untilMs === Number.POSITIVE_INFINITY) return;
      current = undefined;
      isRefused = true;
      try {
        context = readKubeContext(source);
        authenticate = createAuthentication(context);
      } catch {
        // The file might only be partially written, so we keep using the configuration in memory. The file is read
        // again after another 401 response.
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
  // Share the context, so that not every connection parses the certificates again.
  let context: SecureContext | undefined;
  const create = (connections: number | null): Dispatcher => {
    // Since this uses HTTP/1.1, only a single request is affected if a connection is lost without being closed.
    const pool = { allowH2: false, keepAliveTimeout: 30_000, connections };
    if (proxy !== undefined) return new ProxyAgent({ ...pool, uri: proxy, requestTls: tls, clientFactory: tunnelFrom });
    const connectorOf = (secureContext: SecureContext) =>
      buildConnector({
        ...tls,
        secureContext,
        allowH2: false,
        timeout: CONNECT_WITHIN_MS,
        keepAlive: true,
        keepAliveInitialDelay: 15_000,
      });
    let connect: ReturnType<typeof connectorOf> | undefined;
    return new Agent({
      ...pool,
      connect: (options, callback) => {
        context ??= createSecureContext(tls);
        connect ??= connectorOf(context);
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

/**
 * Creates the client that asks a proxy for tunnels. By default, undici would wait 5 minutes for the response of the
 * proxy. All requests would wait for this connection, even if the proxy had been restarted in the meantime.
 */
function tunnelFrom(proxy: URL, options: object): Dispatcher {
  return new Pool(proxy, { ...options, headersTimeout: CONNECT_WITHIN_MS });
}

import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import type { KubeContext, Material, OtherUser, PlainUser } from './kubeconfig.ts';

/** The data that is used to authenticate the API server to us, and us to the API server. */
export interface Authentication {
  /** The options for a TLS connection: ca, cert, key, servername, and rejectUnauthorized, if set. */
  readonly tls: Readonly<Record<string, unknown>>;
  /** The names are in lowercase. */
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Returns a function that will read the current certificates and tokens. Files are read each time. An exec plugin is
 * only run after its credentials have expired.
 */
export function createAuthentication(context: KubeContext): () => Promise<Authentication> {
  const { user } = context;
  return 'kubeconfig' in user ? createOther(user) : async () => readPlain(context, user);
}

/**
 * The files are read synchronously because otherwise an earlier call could end after a later call. Since the files are
 * small, this is not a problem.
 */
function readPlain(context: KubeContext, user: PlainUser): Authentication {
  const headers: Record<string, string> = {};
  // Token files may end with a newline, which is not allowed in a header.
  const token = (user.token ?? (user.tokenFile && readFileSync(user.tokenFile, 'utf8')))?.trim();
  // Without a token, this would be an anonymous request, and look like a missing permission.
  if (token === '' && user.tokenFile !== undefined) throw new Error(`${user.tokenFile} is empty`);
  if (token) headers.authorization = `Bearer ${token}`;
  if (user.username !== undefined) headers.authorization = basic(`${user.username}:${user.password ?? ''}`);
  const tls = {
    ca: readMaterial(context.ca),
    cert: readMaterial(user.cert),
    key: readMaterial(user.key),
    servername: context.tlsServerName,
    rejectUnauthorized: context.skipTlsVerify ? false : undefined,
  };
  return { tls: defined(tls), headers };
}

function readMaterial(material: Material | undefined): Buffer | undefined {
  if (material === undefined) return undefined;
  return 'file' in material ? readFileSync(material.file) : Buffer.from(material.data, 'base64');
}

/** Leaves exec plugins, auth providers, and impersonation to client-node. */
function createOther({ kubeconfig }: OtherUser): () => Promise<Authentication> {
  // This is only loaded if required, because it contains models of all Kubernetes kinds, and uses about 40 MiB of
  // memory.
  const loading = import('@kubernetes/client-node').then(({ KubeConfig }) => {
    const config = new KubeConfig();
    config.loadFromString(kubeconfig);
    return config;
  });
  // The first request will report the error.
  loading.catch(() => {});
  return async () => {
    const options: RequestOptions = {};
    await (await loading).applyToHTTPSOptions(options);
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {}))
      headers[name.toLowerCase()] = String(value).trim();
    if (options.auth) headers.authorization = basic(options.auth);
    return { tls: defined({ ca, cert, key, servername, rejectUnauthorized }), headers };
  };
}

function basic(credentials: string): string {
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

function defined(options: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined && value !== null));
}

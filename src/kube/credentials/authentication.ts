import { readFileSync } from 'node:fs';
import type { RequestOptions } from 'node:https';
import type { Headers, KubeContext, Material, OtherUser, PlainUser } from './kubeconfig.ts';

/** The data that is used to authenticate the API server to us, and us to the API server. */
export interface Authentication {
  /** The options for a TLS connection: ca, cert, key, servername, and rejectUnauthorized, if set. */
  readonly tls: Readonly<Record<string, unknown>>;
  /** The names are in lowercase. */
  readonly headers: Headers;
}

/**
 * Returns a function that will read the current certificates and tokens. Files are read each time. An exec plugin is
 * only run after its credentials have expired.
 */
export function createAuthentication(context: KubeContext): () => Promise<Authentication> {
  const { user, impersonation } = context;
  const authenticate = 'kubeconfig' in user ? createOther(user) : async () => readPlain(context, user);
  return async () => {
    const { tls, headers } = await authenticate();
    return { tls, headers: { ...headers, ...impersonation } };
  };
}

/**
 * The files are read synchronously because otherwise an earlier call could end after a later call. Since the files are
 * small, this is not a problem.
 */
function readPlain(context: KubeContext, user: PlainUser): Authentication {
  const headers: Record<string, string> = {};
  const token = readToken(user);
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

/** Reads the token file. As for kubectl, `token` is only used if the file can't be read. */
function readToken({ token, tokenFile }: PlainUser): string | undefined {
  if (tokenFile === undefined) return token?.trim();
  try {
    // Token files may end with a newline, which is not allowed in a header.
    const read = readFileSync(tokenFile, 'utf8').trim();
    // Without a token, this would be an anonymous request, and look like a missing permission.
    if (read === '') throw new Error(`${tokenFile} is empty`);
    return read;
  } catch (error) {
    if (token === undefined) throw error;
    return token.trim();
  }
}

function readMaterial(material: Material | undefined): Buffer | undefined {
  if (material === undefined) return undefined;
  return 'file' in material ? readFileSync(material.file) : Buffer.from(material.data, 'base64');
}

/** Leaves exec plugins and auth providers to client-node. */
function createOther({ kubeconfig }: OtherUser): () => Promise<Authentication> {
  // Only loaded if required, because it contains models of all Kubernetes kinds, and uses about 40 MiB of memory.
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

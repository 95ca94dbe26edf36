/** The host and the server port. */
export interface RedisNode {
  readonly host: string;
  readonly port: number;
}

/** The parsed value of `SLUICE_REDIS_URL`. */
export interface RedisUrl {
  /** The address of a single Redis, of the nodes in a Cluster, or of the Sentinels for `sentinel`. */
  readonly nodes: readonly RedisNode[];
  readonly tls: boolean;
  readonly username: string | undefined;
  readonly password: string | undefined;
  /** Undefined if no Sentinels are required to find the master. */
  readonly sentinel: { readonly master: string; readonly db: number } | undefined;
}

const FORMS =
  'must be redis://[user:password@]host:port, or rediss:// for TLS; separate several URLs with commas. For Sentinel, use redis+sentinel://[user:password@]host:port,host:port/<master name>, or rediss+sentinel://';
const REDIS_PORT = 6379;
const SENTINEL_PORT = 26379;

/**
 * Used to find out if the scheme uses TLS, and to get the user information, the hosts, the name of the master, and the
 * database.
 */
const SENTINEL = /^redis(s?)\+sentinel:\/\/(?:([^@/\s]*)@)?([^@/\s]+)(?:\/([^/\s]+)?(?:\/(\d{1,4}))?\/?)?$/;

/**
 * Parses `SLUICE_REDIS_URL`. If there are several URLs, the user and the password of the first URL are used.
 *
 * @throws an Error with the required change, without the password
 */
export function parseRedisUrl(text: string): RedisUrl {
  try {
    return /^rediss?\+sentinel:/.test(text.trim()) ? parseSentinelUrl(text.trim()) : parseServerUrls(text);
  } catch (error) {
    // A malformed percent-encoding.
    if (error instanceof URIError) throw new Error('must percent-encode the user and the password, such as %40 for @');
    throw error;
  }
}

function parseServerUrls(text: string): RedisUrl {
  const urls = text.split(',').map(each => parseServer(each.trim(), REDIS_PORT));
  const [first] = urls;
  if (first === undefined || urls.some(({ tls }) => tls !== first.tls)) {
    throw new Error('must be either redis:// or rediss:// for all nodes of a Redis Cluster');
  }
  const nodes = urls.map(({ host, port }) => ({ host, port }));
  return { nodes, tls: first.tls, username: first.username, password: first.password, sentinel: undefined };
}

function parseSentinelUrl(text: string): RedisUrl {
  const [, tls, user = '', hosts = '', master, db = '0'] = SENTINEL.exec(text) ?? [];
  if (tls === undefined) throw new Error(FORMS);
  if (master === undefined) {
    throw new Error(
      'does not contain a master name. Add the name after the Sentinels, such as redis+sentinel://sentinel:26379/mymaster',
    );
  }
  const nodes = hosts.split(',').map(host => parseServer(`redis://${user}@${host}`, SENTINEL_PORT));
  return {
    nodes: nodes.map(({ host, port }) => ({ host, port })),
    tls: tls === 's',
    username: nodes[0]?.username,
    password: nodes[0]?.password,
    sentinel: { master: decodeURIComponent(master), db: Number(db) },
  };
}

function parseServer(text: string, defaultPort: number) {
  const url = /^rediss?:\/\/[^/\s?#]+\/?$/.test(text) ? URL.parse(text) : null;
  if (url === null || url.hostname === '') throw new Error(FORMS);
  const given = (part: string) => (part === '' ? undefined : decodeURIComponent(part));
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: Number(url.port || defaultPort),
    tls: url.protocol === 'rediss:',
    username: given(url.username),
    password: given(url.password),
  };
}

/**
 * Returns the addresses in `SLUICE_REDIS_URL`. Passwords are not included. The user may have been set using another
 * variable.
 */
export function withoutPasswords(text: string, username?: string): string {
  const { nodes, tls, sentinel, ...inUrl } = parseRedisUrl(text);
  const name = username ?? inUrl.username;
  const user = name === undefined ? '' : `${encodeURIComponent(name)}@`;
  const places = nodes.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  const scheme = tls ? 'rediss' : 'redis';
  if (sentinel === undefined) return places.map(place => `${scheme}://${user}${place}`).join(',');
  const { master, db } = sentinel;
  return `${scheme}+sentinel://${user}${places.join(',')}/${encodeURIComponent(master)}${db === 0 ? '' : `/${db}`}`;
}

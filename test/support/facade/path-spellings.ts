/** A request that servers, proxies or middleware may interpret differently. */
export interface PathSpelling {
  readonly name: string;
  /** Returns the request's bytes, for a guarded path starting with /waas/ and additional header lines. */
  readonly render: (path: string, headers?: readonly string[]) => Buffer;
}

function request(first: string, headers: readonly string[] = [], host = 'Host: localhost'): Buffer {
  const lines = [first, ...(host === '' ? [] : [host]), 'Connection: close', ...headers];
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

/** Returns a request with another representation of the path. */
const path = (name: string, change: (path: string) => string): PathSpelling => ({
  name,
  render: (given, headers) => request(`GET ${change(given)} HTTP/1.1`, headers),
});
/** Returns a request with another representation of `waas` at the start of the path. */
const prefix = (spelled: string): PathSpelling =>
  path(`${spelled} for /waas`, given => given.replace('/waas', spelled));
const method = (name: string): PathSpelling => ({
  name: `method ${name}`,
  render: (given, headers) => request(`${name} ${given} HTTP/1.1`, headers),
});
/** Returns a request with a header that some servers use as the path, the method, or the prefix. */
const header = (target: string, line: (path: string) => string): PathSpelling => ({
  name: `${line('…')} at ${target === '' ? 'the path itself' : target}`,
  render: (given, headers = []) => request(`GET ${target === '' ? given : target} HTTP/1.1`, [line(given), ...headers]),
});
const rest = (given: string) => given.slice('/waas'.length);

const PREFIXES = [
  '//waas',
  '///waas',
  '/./waas',
  '/../waas',
  '/x/../waas',
  '/events/../waas',
  '/waas/../waas',
  '/waas/.',
  '/waas/..;/waas',
  '/waas/./x/..',
  '/WAAS',
  '/Waas',
  '/waaS',
  '/%77aas',
  '/%57aas',
  '/wa%61s',
  '/%77%61%61%73',
  '/%2577aas',
  '/%u0077aas',
  '/waas%2f',
  '/waas%2F..%2Fwaas',
  '/waas%5c',
  '/waas%252f',
  '%2fwaas',
  '/%2fwaas',
  '/%2e/waas',
  '/%2e%2e/waas',
  '/.%2e/waas',
  '/%252e%252e/waas',
  '/%c0%ae%c0%ae/waas',
  '/%c0%afwaas',
  '/%e0%80%afwaas',
  '/waas%c0%af',
  '/\\waas',
  '\\waas',
  '/x\\..\\waas',
  '/waas\\',
  '/waas;',
  '/waas;x',
  '/waas;jsessionid=1',
  '/;/waas',
  '/;x=y/waas',
  '/waas%3b',
  '/waas%3bx',
  '/waas.',
  '/waas..',
  '/waas%20',
  '/waas+',
  '/%20waas',
  '/waas%09',
  '/waas%00',
  '/%00/waas',
  '/waas%0d%0a',
  '/waas%ff',
  '/waas%',
  '/waas%2',
  '/waas%zz',
  '/waas~',
  '/waas,',
  '/waas:',
  '/waas!',
  '/waas@',
  '/@waas',
  '/w\xe4as',
  '/\xef\xbd\x97aas',
  '/wa\xe2\x80\x8bas',
  '/waas\xff',
  '/waas|',
  '/{waas}',
  '/waas/',
  '/waas//',
  '/waas///',
];

const PATHS: readonly PathSpelling[] = [
  path('as it is', given => given),
  path('slashes doubled', given => given.replaceAll('/', '//')),
  path('a slash behind', given => `${given}/`),
  path('slashes behind', given => `${given}//`),
  path('%2f for each slash', given => given.replaceAll('/', '%2f')),
  path('%2f for all slashes except for the first', given => `/${given.slice(1).replaceAll('/', '%2F')}`),
  path('%5c for all slashes except for the first', given => `/${given.slice(1).replaceAll('/', '%5c')}`),
  path('backslashes', given => given.replaceAll('/', '\\')),
  path('all percent-encoded', given =>
    given.replaceAll(/[^/]/g, letter => `%${letter.charCodeAt(0).toString(16).padStart(2, '0')}`),
  ),
  path('all percent-encoded twice', given =>
    given.replaceAll(/[^/]/g, letter => `%25${letter.charCodeAt(0).toString(16).padStart(2, '0')}`),
  ),
  path('upper case', given => given.toUpperCase()),
  path('dots behind', given => `${given}/.`),
  path('up and down', given => `${given}/../..${given}`),
  path('%2e%2e behind', given => `${given}/%2e%2e`),
  path('%00 behind', given => `${given}%00`),
  path('.json behind', given => `${given}.json`),
  path('an extension after a semicolon', given => `${given};.css`),
  path('a static file behind', given => `${given}/..%2f..%2ffavicon.ico`),
  path('a percent sign behind', given => `${given}%`),
  path('Latin-1 behind', given => `${given}/\xe4`),
  path('without the first slash', given => given.slice(1)),
  path('4 KiB of slashes before', given => '/'.repeat(4_096) + given),
  path('a parameter of 4 KiB', given => given.replace('ten_1', 'a'.repeat(4_096))),
  path('up from the guarded part', given => `/waas/../events${rest(given)}`),
  path('the guarded part alone', () => '/waas'),
  path('the guarded part alone, with a query', () => '/waas?x'),
  path('what does not exist in it', () => '/waas/nothing'),
];

const QUERIES: readonly PathSpelling[] = [
  path('a query', given => `${given}?a=1`),
  path('an empty query', given => `${given}?`),
  path('a query that looks like a path', given => `${given}?/../../events`),
  path('the path in a query of /', given => `/?${given}`),
  path('the path in a query of //', given => `//?${given}`),
  path('an encoded question mark', given => `${given}%3fa=1`),
  path('a question mark in the prefix', given => `/waas?${rest(given)}`),
  path('a query that is no UTF-8', given => `${given}?a=%ff`),
  path('a query with a percent sign', given => `${given}?a=%`),
  path('a query with overlong UTF-8', given => `${given}?a=%c0%af`),
  path('a query with half a surrogate pair', given => `${given}?a=%ed%a0%80`),
  path('a query of brackets', given => `${given}?a[b][c]=1&__proto__[auth]=1&constructor[prototype][auth]=1`),
  path('a query that names what is looked for', given => `${given}?auth=1&payload=1&sub=ada`),
  path('a thousand parameters', given => `${given}?${'a=1&'.repeat(1_000)}`),
  path('a fragment', given => `${given}#x`),
  path('a fragment that looks like a query', given => `${given}#?x`),
  path('an encoded fragment', given => `${given}%23x`),
  path('the path in a fragment of /', given => `/#${given}`),
];

const TARGETS: readonly PathSpelling[] = [
  path('absolute', given => `http://localhost${given}`),
  path('absolute, https', given => `https://localhost${given}`),
  path('absolute, another host', given => `http://evil.example${given}`),
  path('absolute, with a user', given => `http://a:b@localhost${given}`),
  path('absolute, with a query before the path', given => `http://localhost?${given}`),
  path('absolute, without a host', given => `http://${given}`),
  path('absolute, with slashes doubled', given => `http://localhost/${given}`),
  path('absolute, upper case', given => `HTTP://LOCALHOST${given}`),
  path('absolute, another scheme', given => `file://${given}`),
  path('absolute, ws', given => `ws://localhost${given}`),
  path('absolute in the path', given => `/http://localhost${given}`),
  path('relative to the scheme', given => `//localhost${given}`),
  path('asterisk', () => '*'),
  path('asterisk and the path', given => `*${given}`),
  path('asterisk in the prefix', given => given.replace('/waas', '/*')),
  path('a tab behind', given => `${given}\t`),
  path('a tab before', given => `\t${given}`),
  path('a space in it', given => given.replace('/producer', ' /producer')),
  path('a vertical tab in it', given => `${given}\x0b`),
  path('NUL in it', given => `${given}\0`),
  path('a line feed in it', given => `${given}\n`),
  path('a second request line', given => `/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\nGET ${given}`),
  {
    name: 'HTTP/1.0 without Host',
    render: (given, headers) => request(`GET ${given} HTTP/1.0`, headers, ''),
  },
  { name: 'HTTP/1.0', render: (given, headers) => request(`GET ${given} HTTP/1.0`, headers) },
  { name: 'HTTP/0.9', render: given => Buffer.from(`GET ${given}\r\n\r\n`) },
  { name: 'HTTP/1.2', render: (given, headers) => request(`GET ${given} HTTP/1.2`, headers) },
  { name: 'HTTP/2.0', render: (given, headers) => request(`GET ${given} HTTP/2.0`, headers) },
  { name: 'http/1.1 in lower case', render: (given, headers) => request(`GET ${given} http/1.1`, headers) },
  { name: 'no Host', render: (given, headers) => request(`GET ${given} HTTP/1.1`, headers, '') },
  { name: 'empty Host', render: (given, headers) => request(`GET ${given} HTTP/1.1`, headers, 'Host:') },
  {
    name: 'a path as Host',
    render: (given, headers) => request(`GET ${given} HTTP/1.1`, headers, 'Host: localhost/events?'),
  },
  {
    name: 'Host with a user',
    render: (given, headers) => request(`GET ${given} HTTP/1.1`, headers, 'Host: a@localhost'),
  },
  {
    name: 'Host twice',
    render: (given, headers) => request(`GET ${given} HTTP/1.1`, headers, 'Host: localhost\r\nHost: evil.example'),
  },
  { name: 'lines that end in LF', render: given => Buffer.from(`GET ${given} HTTP/1.1\nHost: x\n\n`) },
  {
    name: 'empty lines before',
    render: (given, headers) => Buffer.concat([Buffer.from('\r\n\r\n'), request(`GET ${given} HTTP/1.1`, headers)]),
  },
  {
    name: 'the preface of HTTP/2',
    render: () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  },
  {
    name: 'an upgrade to h2c',
    render: (given, headers = []) =>
      request(`GET ${given} HTTP/1.1`, ['Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA', ...headers]),
  },
  {
    name: 'an upgrade to WebSocket',
    render: (given, headers = []) =>
      Buffer.from(
        `GET ${given} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n${headers.map(line => `${line}\r\n`).join('')}\r\n`,
      ),
  },
];

const METHODS =
  'HEAD OPTIONS TRACE CONNECT POST PUT PATCH DELETE QUERY PROPFIND MKCOL PURGE SEARCH LOCK LINK M-SEARCH SOURCE get Get FOO'
    .split(' ')
    .concat('GET\t', '');

const OVERRIDES: readonly PathSpelling[] = [
  ...['X-HTTP-Method-Override: GET', 'X-HTTP-Method: OPTIONS', 'X-Method-Override: HEAD', '_method: GET'].map(line =>
    header('', () => line),
  ),
  ...[
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-Original-URI',
    'X-Forwarded-Path',
    'X-Forwarded-Uri',
    'X-Envoy-Original-Path',
  ].flatMap(name => [header('/', given => `${name}: ${given}`), header('', () => `${name}: /healthz`)]),
  header('', () => 'X-Forwarded-Prefix: /public'),
  header('', () => 'X-Forwarded-Prefix: /waas'),
  header('/producer/ten_1/catalog', () => 'X-Forwarded-Prefix: /waas'),
  header('', () => 'X-Forwarded-For: 127.0.0.1'),
  header('', () => 'X-Forwarded-Host: trusted.example'),
  header('', () => 'X-Forwarded-Proto: https'),
  header('', () => 'Forwarded: for=127.0.0.1;host=trusted.example'),
  header('', () => 'X-Forwarded-User: ada'),
  header('', () => 'X-Remote-User: ada'),
  header('', () => 'X-Auth-Request-User: ada'),
  header('', () => 'X-Middleware-Subrequest: middleware'),
  header('', () => 'Accept-Version: 1.0.0'),
  header('', () => 'auth: {"payload":{"sub":"ada"}}'),
  header('', () => '__proto__: x'),
  header('', () => 'Expect: 100-continue'),
  header('', () => 'Content-Type: application/x-www-form-urlencoded'),
  header('', () => 'Content-Length: 0'),
];

/**
 * Without a token, none of these requests may reach a guarded route. None of them may result in 5xx, with or without a
 * token.
 */
export const PATH_SPELLINGS: readonly PathSpelling[] = [
  ...PREFIXES.map(prefix),
  ...PATHS,
  ...QUERIES,
  ...TARGETS,
  ...METHODS.map(method),
  ...OVERRIDES,
];

import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { readKeySet } from './issuer-documents.ts';

const LIMITS = { timeoutMs: 1_000, maxBytes: 10_000 };

type Answers = Readonly<Record<string, unknown>>;

/** An issuer that responds to each path with a JSON document, a text, or a listener. Its address is `url`. */
async function serve(answers: (url: string) => Answers): Promise<string> {
  const asked: RequestListener = (request, response) => {
    const answer = answers(url)[request.url as string];
    if (typeof answer === 'function') return (answer as RequestListener)(request, response);
    response.statusCode = answer === undefined ? 404 : 200;
    response.end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? {}));
  };
  const server = createServer(asked);
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => server.closeAllConnections());
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return url;
}

const METADATA = '/.well-known/openid-configuration';
const key = { kty: 'RSA', kid: 'a', n: 'AQAB', e: 'AQAB' };
const moved: RequestListener = (_request, response) => void response.writeHead(302, { location: '/elsewhere' }).end();

test('reads metadata and keys, below a path too', async () => {
  const url = await serve(at => ({
    [METADATA]: { issuer: at, jwks_uri: `${at}/keys` },
    [`/realms/x${METADATA}`]: { issuer: `${at}/realms/x/`, jwks_uri: `${at}/keys` },
    '/keys': { keys: [key] },
  }));
  expect(await readKeySet(url, LIMITS)).toEqual({ keys: [key] });
  // A slash at the end of the issuer is part of its name, but not of the metadata path.
  expect(await readKeySet(`${url}/realms/x/`, LIMITS)).toEqual({ keys: [key] });
});

test('keeps public keys with a name only', async () => {
  const keys = [
    key,
    { ...key, kid: undefined },
    { ...key, d: 'x' },
    { kty: 'oct', kid: 'b', k: 'x' },
    null,
    'a',
    { kty: 'EC', kid: 'c' },
  ];
  const url = await serve(at => ({ [METADATA]: { issuer: at, jwks_uri: `${at}/keys` }, '/keys': { keys } }));
  expect((await readKeySet(url, LIMITS)).keys.map(({ kid }) => kid)).toEqual(['a', 'c']);
});

test.each<[string, (url: string) => Answers, RegExp]>([
  ['no metadata', () => ({}), /returned status 404/],
  ['metadata that are no JSON', () => ({ [METADATA]: '<html>' }), /JSON/],
  ['metadata that are no object', () => ({ [METADATA]: 'null' }), /did not return a JSON object/],
  [
    'metadata of another',
    at => ({ [METADATA]: { issuer: `${at}/`, jwks_uri: `${at}/keys` } }),
    /a different issuer: "http:.*\/"$/,
  ],
  ['metadata that are elsewhere', at => ({ [METADATA]: moved, '/elsewhere': { issuer: at } }), /fetch failed/],
  ['no jwks_uri', at => ({ [METADATA]: { issuer: at } }), /does not contain jwks_uri/],
  [
    'a jwks_uri of another scheme',
    at => ({ [METADATA]: { issuer: at, jwks_uri: 'file:///etc/passwd' } }),
    /does not use https/,
  ],
  [
    'keys that are elsewhere',
    at => ({ [METADATA]: { issuer: at, jwks_uri: `${at}/keys` }, '/keys': moved }),
    /fetch failed/,
  ],
  ['no keys', at => ({ [METADATA]: { issuer: at, jwks_uri: `${at}/keys` }, '/keys': {} }), /does not contain any keys/],
  [
    'only keys that are of no use',
    at => ({ [METADATA]: { issuer: at, jwks_uri: `${at}/keys` }, '/keys': { keys: [{ ...key, kid: undefined }] } }),
    /does not contain any public keys with a kid/,
  ],
  ['too much', () => ({ [METADATA]: 'x'.repeat(10_001) }), /larger than 10000 bytes/],
])('%s: an error', async (_, answers, message) => {
  await expect(readKeySet(await serve(answers), LIMITS)).rejects.toThrow(message);
});

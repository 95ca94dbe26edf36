import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import { append, trimmed } from '../../http/collected-bytes.ts';
import { Refusal } from '../../http/refusal.ts';
import { BODY_BYTES } from './route.ts';

/**
 * The maximum number of fields and items in a body, at any depth. A list that contains a list or an object is counted
 * twice. No call requires more than a tenth of this number.
 */
export const MOST_VALUES = 5_000;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Matches `__proto__`, and any escape sequences for NUL, surrogates, or a letter in `__proto__`. There's no need to
 * check anything else: unescaped JSON can't contain NUL, and UTF-8 can't contain surrogates.
 */
const SUSPECT = /\\u(?:0000|d[89a-f]|005f|006f|007[024])|__proto__/i;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;

/** Returns the index after the end of the string that starts at `start`. */
function behindString(bytes: Buffer, start: number): number {
  let end = start;
  for (;;) {
    end = bytes.indexOf(QUOTE, end + 1);
    if (end < 0) return bytes.length;
    let escapes = end - 1;
    while (bytes[escapes] === BACKSLASH) escapes--;
    if ((end - escapes) % 2 === 1) return end + 1;
  }
}

/**
 * Counts the values in a body using their separators. The body does not have to be parsed for this. Stops early if
 * there are more than `MOST_VALUES`.
 */
function countValues(bytes: Buffer): number {
  let values = 1;
  let at = 0;
  while (at < bytes.length && values <= MOST_VALUES) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = behindString(bytes, at);
      continue;
    }
    if (byte === COMMA || byte === OPENING_BRACKET || byte === OPENING_BRACE) values++;
    at++;
  }
  return values;
}

/** Rejects the key `__proto__`, and any text that can't be stored in a custom resource. */
function refuseWhatCannotBeKept(key: string, value: unknown): unknown {
  for (const text of [key, value]) {
    if (typeof text === 'string' && (text.includes('\0') || !text.isWellFormed())) {
      throw new Refusal('malformed_body', 'Text must be valid Unicode without NUL characters.');
    }
  }
  if (key === '__proto__') throw new Refusal('malformed_body', 'A field cannot have the name __proto__.');
  return value;
}

/**
 * Reads a body into a single buffer. Fastify would collect the chunks in a list.
 *
 * @param announced the Content-Length, if there is one
 * @param most the limit of the route, in bytes
 * @throws FST_ERR_CTP_BODY_TOO_LARGE, or the error of the request
 */
export function readBody(payload: Readable, announced: string | undefined, most: number): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let body: Buffer = Buffer.alloc(0);
  let used = 0;
  const end = () => resolve(trimmed(body, used));
  function refuse(error: Error): void {
    payload.removeListener('data', add);
    payload.removeListener('end', end);
    reject(error);
  }
  function add(chunk: Buffer): void {
    if (used + chunk.length > most) return refuse(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    body = append(body, used, chunk, most);
    used += chunk.length;
  }
  if (Number(announced) > most) {
    reject(new errorCodes.FST_ERR_CTP_BODY_TOO_LARGE());
    return promise;
  }
  payload.on('data', add);
  payload.on('end', end);
  payload.on('error', error => refuse(Object.assign(error, { statusCode: 400 })));
  return promise;
}

/**
 * Parses a JSON body (RFC 8259, UTF-8). Returns undefined if the body is empty. Since a reviver makes parsing fifty
 * times slower, we only use one if the text contains suspect characters.
 *
 * @throws Refusal 400 `malformed_body`, 413 `body_too_large`
 */
export function parseJsonBody(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (countValues(bytes) > MOST_VALUES) {
    throw new Refusal('body_too_large', `Send at most ${MOST_VALUES.toLocaleString('en')} fields and items in a body.`);
  }
  try {
    const text = decoder.decode(bytes);
    return SUSPECT.test(text) ? JSON.parse(text, refuseWhatCannotBeKept) : JSON.parse(text);
  } catch (cause) {
    if (cause instanceof Refusal) throw cause;
    throw new Refusal('malformed_body', { cause });
  }
}

/** Lets a server read JSON bodies, and refuse those of other types (415) unless they are empty. */
export function acceptJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    async ({ headers, routeOptions }: FastifyRequest, payload: IncomingMessage) =>
      parseJsonBody(await readBody(payload, headers['content-length'], routeOptions.bodyLimit ?? BODY_BYTES)),
  );
  // Some proxies send a request without a body as an empty one of unknown length (`Transfer-Encoding: chunked`).
  app.addContentTypeParser('*', async ({ headers, is404 }: FastifyRequest, payload: IncomingMessage) => {
    // The response says which path to use, whatever the body is.
    if (is404) return;
    try {
      await readBody(payload, headers['content-length'], 0);
    } catch {
      throw new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE(headers['content-type'] ?? '');
    }
  });
}

import { Refusal } from '../../http/refusal.ts';

/**
 * Most values (fields and items, at any depth) of a body; a list or an object in a list counts twice. No call takes a
 * tenth of it.
 */
export const MOST_VALUES = 5_000;

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Escapes that may stand for a NUL, for half of a surrogate pair, or for a letter of `__proto__`, and that name itself.
 * Text without any of them holds nothing that has to be refused: unescaped, JSON has no NUL and UTF-8 no surrogates.
 */
const SUSPECT = /\\u(?:0000|d[89a-f]|005f|006f|007[024])|__proto__/i;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENING_BRACE = 0x7b;

/** Returns the index behind the string that begins at `start`. */
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

/** Counts values by what separates them, without reading them; stops above `MOST_VALUES`. */
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

/** Refuses what no text of a custom resource can hold, and a key that would reach into prototypes. */
function refuseWhatCannotBeKept(key: string, value: unknown): unknown {
  for (const text of [key, value]) {
    if (typeof text === 'string' && (text.includes('\0') || !text.isWellFormed())) {
      throw new Refusal('malformed_body', 'Text has to be well-formed Unicode without NUL.');
    }
  }
  if (key === '__proto__') throw new Refusal('malformed_body', 'A field cannot be called __proto__.');
  return value;
}

/**
 * Reads a JSON body (RFC 8259, UTF-8). None at all is undefined. A body without suspect text is walked by nothing but the
 * parser of the engine: a function that sees each value costs fifty times as much.
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

import { createHmac } from 'node:crypto';

/** Separates these hashes from other values derived from the root key. */
const LABEL = 'sluice audit v1';
const MOST_CHARACTERS = 256;
const MOST_ITEMS = 20;
const MOST_JSON = 2_000;

/**
 * Returns the text in a format that is safe for audit lines. `isName` specifies if the text is used to identify a
 * caller.
 */
export type Redact = (text: string, isName?: boolean) => string;

/**
 * Creates a function that hides personal data and credentials. Text with an `@` may be an email address, which many
 * identity providers use as subject: it becomes `hmac:` and 32 hexadecimal characters of an HMAC-SHA-256 under the root
 * key. The hash of an address does not depend on upper and lower case. Only the origin of a URL is kept, because
 * everything else could contain credentials. If a URL is the caller name, such as a SPIFFE id, it is hashed instead so
 * that different callers stay different. Text is cut after 256 characters.
 */
export function createRedact(rootKey: Uint8Array): Redact {
  return (text, isName = false) => {
    const isUrl = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
    if (isUrl && !isName) return originOf(text);
    if (isUrl || text.includes('@')) return `hmac:${hash(rootKey, text)}`;
    return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}…` : text;
  };
}

function hash(rootKey: Uint8Array, text: string): string {
  return createHmac('sha256', rootKey).update(`${LABEL}\0${text.toLowerCase()}`, 'utf8').digest('hex').slice(0, 32);
}

function originOf(url: string): string {
  const { protocol, host } = URL.parse(url) ?? {};
  return protocol === undefined || host === undefined ? '[url]' : `${protocol}//${host}`;
}

/**
 * Fields that must never be included. These are the values of endpoint headers (even if they are encrypted) and the
 * hashes of ingress keys.
 */
const HIDDEN = new Set(['value', 'valueSealed', 'sha256']);

/** Fields which are used to identify a caller. */
const NAMES = new Set(['subject', 'client', 'group']);

/**
 * Returns a JSON value in a format that is safe for audit lines. The issuer can be kept because it can't contain any
 * credentials.
 */
export function redactValue(value: unknown, redact: Redact, key = ''): unknown {
  if (HIDDEN.has(key)) return '[hidden]';
  if (typeof value === 'string') return key === 'issuer' ? value : redact(value, NAMES.has(key));
  if (Array.isArray(value)) {
    const items = value.slice(0, MOST_ITEMS).map(item => redactValue(item, redact));
    return value.length > MOST_ITEMS ? [...items, `… ${value.length - MOST_ITEMS} more`] : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  if (JSON.stringify(value).length > MOST_JSON) return '[too large]';
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, redactValue(each, redact, name)]));
}

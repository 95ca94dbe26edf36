import { createHmac } from 'node:crypto';

/** Separates these hashes from other values derived from the root key. */
const LABEL = 'sluice audit v1';
const MOST_CHARACTERS = 256;
const MOST_ITEMS = 20;
/**
 * The maximum number of items in a list that was changed. A list of owners has up to as many, all of which are shown.
 */
export const MOST_CHANGED_ITEMS = 64;
/** The maximum size of an object as it is shown. An endpoint with all of its fields is smaller. */
const MOST_JSON = 16_384;

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
 * Fields that must never be included: the values of endpoint headers (even if they are encrypted) and the hashes of
 * ingress keys.
 */
const HIDDEN = new Set(['value', 'valueSealed', 'sha256']);

/** Fields which are used to identify a caller. */
const NAMES = new Set(['subject', 'client', 'group']);

/**
 * Returns a JSON value in a format that is safe for audit lines. The issuer can be kept because it can't contain any
 * credentials.
 *
 * @param mostItems the maximum number of items of each list that are shown
 */
export function redactValue(value: unknown, redact: Redact, key = '', mostItems = MOST_ITEMS): unknown {
  if (HIDDEN.has(key)) return '[hidden]';
  if (typeof value === 'string') return key === 'issuer' ? value : redact(value, NAMES.has(key));
  if (Array.isArray(value)) {
    const items = value.slice(0, mostItems).map(item => redactValue(item, redact, '', mostItems));
    return value.length > mostItems ? [...items, `… ${value.length - mostItems} more`] : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const shown = Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, redactValue(each, redact, name, mostItems)]),
  );
  return JSON.stringify(shown).length > MOST_JSON ? '[too large]' : shown;
}

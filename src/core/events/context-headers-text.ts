/**
 * Text in HTTP headers. Note that Node uses latin1 to decode the values of headers, which means that each character is
 * a single byte.
 */

// Keep a BOM when decoding because it is part of the group key.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Printable ASCII with inner spaces, which doesn't need to be decoded. */
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** Decodes bytes of UTF-8 that are stored as latin1 characters. Returns undefined if they are not valid UTF-8. */
export function decodeUtf8Header(latin1: string): string | undefined {
  if (PRINTABLE_ASCII.test(latin1)) return latin1;
  try {
    return utf8.decode(Buffer.from(latin1, 'latin1'));
  } catch {
    return undefined;
  }
}

/**
 * Decodes the value of a `ce-` header (CloudEvents HTTP binding 1.0.2, 3.1.3.2) by unquoting a quoted string, decoding
 * percent sequences once, and then reading UTF-8. Returns undefined if one of these steps fails.
 */
export function decodeCloudEventHeader(latin1: string): string | undefined {
  let text = latin1;
  if (text.startsWith('"')) {
    const quoted = /^"((?:[^"\\]|\\.)*)"$/.exec(text);
    if (quoted === null) return undefined;
    text = (quoted[1] ?? '').replace(/\\(.)/g, '$1');
  }
  if (text.includes('%')) {
    if (/%(?![0-9A-Fa-f]{2})/.test(text)) return undefined;
    text = text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  }
  return decodeUtf8Header(text);
}

/** Returns true if `rawHeaders` contains several headers with the lowercase name `name`. */
export function isHeaderRepeated(rawHeaders: readonly string[], name: string): boolean {
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const raw = rawHeaders[index];
    if (raw?.length === name.length && raw.toLowerCase() === name) seen += 1;
  }
  return seen > 1;
}

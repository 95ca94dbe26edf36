/**
 * Text in HTTP headers. Node hands header values over as latin1: one character for each byte that was sent.
 */

// Byte by byte: a BOM is part of a group key, not a mark to be dropped.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Printable ASCII, blanks inside included: nothing to decode. */
const PRINTABLE_ASCII = /^[\x20-\x7e]*$/;

/** The text whose UTF-8 bytes `latin1` holds, one per character; undefined when they are not UTF-8. */
export function decodeUtf8Header(latin1: string): string | undefined {
  if (PRINTABLE_ASCII.test(latin1)) return latin1;
  try {
    return utf8.decode(Buffer.from(latin1, 'latin1'));
  } catch {
    return undefined;
  }
}

/**
 * The value of a `ce-` header as the CloudEvents HTTP binding 1.0.2, 3.1.3.2 wants it read: a quoted string is
 * unquoted, then percent sequences are decoded once, then the bytes are UTF-8. Undefined when one of the three fails.
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

/** Whether the header `name` (lower case) stands in `rawHeaders` (name, value, name, value) more than once. */
export function isHeaderRepeated(rawHeaders: readonly string[], name: string): boolean {
  let seen = 0;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (rawHeaders[index]?.toLowerCase() === name) seen += 1;
  }
  return seen > 1;
}

import { isHeaderValue } from '../../../core/delivery/header-value.ts';

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/**
 * The headers that determine where a request ends, or what should be done with the connection. Callers must not set
 * these headers.
 */
const OWN =
  /^(?:connection|content-length|expect|host|http2-settings|keep-alive|proxy-connection|te|trailer|transfer-encoding|upgrade)$/i;

/** Events are sent with POST. OPTIONS asks an endpoint for its consent. */
export type Method = 'POST' | 'OPTIONS';

/** Returns the beginning of a request for a URL that has already been checked. The rest is added by `requestHead`. */
export function requestStart(url: URL, method: Method = 'POST'): string {
  return `${method} ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\nconnection: keep-alive\r\n`;
}

/**
 * Returns headers as lines of a request, using a single character for each byte. If one of them is not allowed in HTTP,
 * this returns `undefined`.
 *
 * @param headers flat list of names and values
 */
export function headerLines(headers: readonly string[]): string | undefined {
  let lines = '';
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] as string;
    const value = headers[i + 1] as string;
    if (!NAME.test(name) || OWN.test(name) || !isHeaderValue(value)) return undefined;
    lines += `${name}: ${value}\r\n`;
  }
  return lines;
}

/** Returns the whole head of a request. */
export function requestHead(start: string, lines: string, bodyBytes: number): string {
  return `${start}${lines}content-length: ${bodyBytes}\r\n\r\n`;
}

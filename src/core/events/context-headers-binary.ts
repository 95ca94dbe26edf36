import type { ProblemError } from '../problems/problem.ts';
import { faultOfAttribute, isAttributeName, REQUIRED_ATTRIBUTES } from './cloudevent-attributes.ts';
import { ATTRIBUTES_MAX, ATTRIBUTES_TOTAL_MAX_LENGTH } from './context-headers-limits.ts';
import { decodeCloudEventHeader, decodeUtf8Header, isHeaderRepeated } from './context-headers-text.ts';

/**
 * The attributes of a CloudEvent in binary mode. The names do not include `ce-`. The values are stored as latin1 text.
 */
export type BinaryAttributes = Record<string, string>;

const PREFIX = 'ce-';

/**
 * Reads the CloudEvent from a request in binary mode. Returns undefined if the request is not a CloudEvent. A request
 * is a CloudEvent if it contains `ce-specversion`, or any `ce-` header that is not in `plain`. The headers in `plain`
 * can also be used by other requests.
 * @param errors receives any errors along with their headers
 */
export function readBinaryCloudEvent(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  rawHeaders: readonly string[],
  plain: ReadonlySet<string>,
  errors: ProblemError[],
): BinaryAttributes | undefined {
  const sent: string[] = [];
  let isCloudEvent = false;
  for (const header in headers) {
    if (!header.startsWith(PREFIX)) continue;
    sent.push(header);
    isCloudEvent ||= !plain.has(header);
  }
  if (!isCloudEvent) return undefined;
  for (const name of REQUIRED_ATTRIBUTES) {
    if (headers[PREFIX + name] === undefined) errors.push({ header: PREFIX + name, detail: faultOfMissing(name) });
  }
  // Only the limit is reported then. Checking thousands of headers, and naming each of them, would take too long.
  if (sent.length > ATTRIBUTES_MAX) {
    errors.push({ detail: 'a CloudEvent can have at most 64 attributes, including extensions' });
    return undefined;
  }
  const attributes: BinaryAttributes = {};
  let total = 0;
  for (const header of sent) {
    const value = headers[header];
    if (typeof value !== 'string') continue;
    total += header.length + value.length;
    const name = header.slice(PREFIX.length);
    const fault =
      value.includes(', ') && isHeaderRepeated(rawHeaders, header)
        ? 'was sent more than once'
        : faultOfHeader(name, value);
    if (fault === undefined) attributes[name] = value;
    else errors.push({ header, detail: fault });
  }
  if (total > ATTRIBUTES_TOTAL_MAX_LENGTH) {
    errors.push({ detail: 'the names and values of all ce- headers are longer than 8,192 bytes' });
  }
  return attributes;
}

function faultOfMissing(name: string): string {
  if (name !== 'specversion') return 'is missing. CloudEvents requires this attribute';
  return 'is missing. Send 1.0 with a CloudEvent or remove all ce- headers';
}

function faultOfHeader(name: string, value: string): string | undefined {
  if (name === 'datacontenttype') return 'cannot be sent in binary mode. Use content-type instead';
  if (!isAttributeName(name))
    return 'is not a valid attribute name. Use lowercase letters and digits and do not use data';
  // "%" is left unencoded by several public packages. Values that can't be decoded are not changed, because receivers
  // will read them in the same way.
  const text = decodeCloudEventHeader(value) ?? decodeUtf8Header(value);
  return text === undefined
    ? 'is not valid UTF-8. Percent-encode all characters that are not ASCII'
    : faultOfAttribute(name, text);
}

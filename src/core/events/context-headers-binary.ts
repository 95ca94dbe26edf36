import type { ProblemError } from '../problems/problem.ts';
import { faultOfAttribute, isAttributeName, REQUIRED_ATTRIBUTES } from './cloudevent-attributes.ts';
import { ATTRIBUTES_MAX, ATTRIBUTES_TOTAL_MAX_LENGTH } from './context-headers-limits.ts';
import { decodeCloudEventHeader, decodeUtf8Header, isHeaderRepeated } from './context-headers-text.ts';

/** Attributes of a CloudEvent in binary mode: names without `ce-`, values as sent, latin1. */
export type BinaryAttributes = Record<string, string>;

const PREFIX = 'ce-';

/**
 * Reads the CloudEvent of a request in binary mode; undefined if it is not one. A request is one if it has `ce-
 * specversion` or any `ce-` header outside `plain`: those in `plain` also serve other requests.
 *
 * @param errors receives each fault with its header
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
  if (sent.length > ATTRIBUTES_MAX)
    errors.push({ detail: 'a CloudEvent may have at most 64 attributes, including extensions' });
  if (total > ATTRIBUTES_TOTAL_MAX_LENGTH) {
    errors.push({ detail: 'the names and values of all ce- headers are longer than 8,192 bytes' });
  }
  return attributes;
}

function faultOfMissing(name: string): string {
  if (name !== 'specversion') return 'is missing; CloudEvents requires it';
  return 'is missing; send 1.0 with a CloudEvent, and no ce- headers without one';
}

function faultOfHeader(name: string, value: string): string | undefined {
  if (name === 'datacontenttype') return 'is sent as content-type in binary mode';
  if (!isAttributeName(name)) return 'names no attribute: names are lower-case letters and digits, and not data';
  // Several public packages send "%" unencoded. A value that does not decode stays unchanged, as receivers read it.
  const text = decodeCloudEventHeader(value) ?? decodeUtf8Header(value);
  return text === undefined ? 'is not UTF-8; percent-encode what is not ASCII' : faultOfAttribute(name, text);
}

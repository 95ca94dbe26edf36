import type { ProblemError } from '../problems/problem.ts';
import { faultOfAttribute, isAttributeName, REQUIRED_ATTRIBUTES } from './cloudevent-attributes.ts';

/** A CloudEvent as a JSON object. We only read its attributes. */
export type StructuredCloudEvent = Readonly<Record<string, unknown>>;

const STRUCTURED = /^\s*application\/cloudevents\+json\s*(?:;|$)/i;
const BATCH = /^\s*application\/cloudevents-batch/i;
const ANY_FORMAT = /^\s*application\/cloudevents/i;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const INT32 = 2 ** 31;
/** The maximum number of errors returned for a single event. */
const FAULTS_MAX = 20;
const SHOWN_NAME_MAX = 64;

// No ignoreBOM here: JSON can start with a BOM, which is not part of the value (RFC 8259, 8.1).
const utf8 = new TextDecoder('utf-8', { fatal: true });

/** Returns true if the body is a CloudEvent in structured JSON mode. */
export function isStructuredCloudEvent(contentType: string | undefined): boolean {
  return contentType !== undefined && STRUCTURED.test(contentType);
}

/**
 * Returns the reason why this content type can't be used for events, or undefined if it can be used. We need to reject
 * batches of CloudEvents and any format other than JSON because Sluice is not able to read their attributes.
 */
export function faultOfContentType(contentType: string | undefined): string | undefined {
  if (contentType === undefined || !ANY_FORMAT.test(contentType) || STRUCTURED.test(contentType)) return undefined;
  if (BATCH.test(contentType)) {
    return 'Batches of CloudEvents are not supported. Send each event in a separate request, as application/cloudevents+json or in binary mode.';
  }
  return 'JSON is the only supported format for structured CloudEvents. Send application/cloudevents+json or send the event in binary mode.';
}

/**
 * Reads the event from `body`. Returns 'malformed' if this isn't UTF-8 JSON, and 'invalid' if the JSON value isn't an
 * object.
 */
export function parseStructuredCloudEvent(body: Uint8Array): StructuredCloudEvent | 'malformed' | 'invalid' {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(body));
  } catch {
    return 'malformed';
  }
  return isObject(value) ? value : 'invalid';
}

function isObject(value: unknown): value is StructuredCloudEvent {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the violations of CloudEvents 1.0.2 and its JSON format for each member. There are at most 20 entries. */
export function faultsOfStructured(event: StructuredCloudEvent): ProblemError[] {
  const errors: ProblemError[] = [];
  for (const name of REQUIRED_ATTRIBUTES) {
    if (event[name] === undefined || event[name] === null) {
      errors.push({ pointer: `/${name}`, detail: 'is missing. CloudEvents requires this attribute' });
    }
  }
  for (const name in event) {
    const fault = faultOfMember(name, event);
    if (fault !== undefined) errors.push({ pointer: pointerOf(name), detail: fault });
    if (errors.length === FAULTS_MAX) break;
  }
  return errors;
}

const TEXT_ONLY = new Set<string>([...REQUIRED_ATTRIBUTES, 'subject', 'time', 'dataschema', 'datacontenttype']);

function faultOfMember(name: string, event: StructuredCloudEvent): string | undefined {
  const value = event[name];
  if (name === 'data' || value === null) return undefined;
  if (name === 'data_base64') {
    if (event['data'] !== undefined && event['data'] !== null)
      return 'cannot be used together with data. Send only one of them';
    return typeof value === 'string' && BASE64.test(value)
      ? undefined
      : 'must be a base64 string (RFC 4648, section 4)';
  }
  if (!isAttributeName(name)) return 'is not a valid attribute name. Use lowercase letters and digits';
  if (TEXT_ONLY.has(name) && typeof value !== 'string') return 'must be a string';
  const text = readAttribute(event, name);
  return text === null ? 'must be a string, a boolean or a 32-bit integer' : faultOfAttribute(name, text ?? '');
}

/** Returns a member's JSON Pointer (RFC 6901). If its name is too long, points to the whole object instead. */
function pointerOf(name: string): string {
  if (name.length > SHOWN_NAME_MAX) return '';
  return `/${name.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')}`;
}

/**
 * Returns the text of an attribute in the canonical form of its type (CloudEvents 1.0.2, "Type System"). Returns
 * undefined if it is absent or null. Returns `null` if an attribute does not have a text (an object, an array, a
 * fraction, or an integer with more than 32 bits).
 */
export function readAttribute(event: StructuredCloudEvent, name: string): string | undefined | null {
  // Names come from configuration, so we don't want `constructor` to find an inherited property.
  if (!Object.hasOwn(event, name)) return undefined;
  const value = event[name];
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number' && Number.isInteger(value) && value >= -INT32 && value < INT32) return String(value);
  return null;
}

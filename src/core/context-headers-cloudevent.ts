/** One CloudEvent as its JSON object; attributes are read by name, the data is not looked at. */
export type StructuredCloudEvent = Readonly<Record<string, unknown>>;

const STRUCTURED = /^\s*application\/cloudevents\+json\s*(?:;|$)/i;

// Without ignoreBOM: JSON may be preceded by a mark, which is not part of it (RFC 8259, 8.1).
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Whether the body is one CloudEvent in structured JSON mode. A batch (`application/cloudevents-batch+json`) is not: it
 * is one event with opaque bytes like any other, described by headers.
 */
export function isStructuredCloudEvent(contentType: string | undefined): boolean {
  return contentType !== undefined && STRUCTURED.test(contentType);
}

/** The event in `body`; 'malformed' when it is not UTF-8 JSON, 'invalid' when it is JSON but no object. */
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

/**
 * An attribute's text, in the canonical form of its type (CloudEvents 1.0.2, "Type System"); undefined when it is
 * absent or null, `null` when it has no text (an object, an array, a fraction).
 */
export function readAttribute(event: StructuredCloudEvent, name: string): string | undefined | null {
  // The names come from configuration: `constructor` must not find what every object inherits.
  if (!Object.hasOwn(event, name)) return undefined;
  const value = event[name];
  if (value === null || value === undefined) return undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || (typeof value === 'number' && Number.isSafeInteger(value))) return String(value);
  return null;
}

import { CONTEXT_HEADER_DEFAULTS } from '../../api/context-headers.ts';
import { isUnread } from '../../api/header-names.ts';
import type { ProblemError } from '../problems/problem.ts';
import type { ProblemCode } from '../problems/problems.ts';
import { type BinaryAttributes, readBinaryCloudEvent } from './context-headers-binary.ts';
import {
  faultsOfStructured,
  isStructuredCloudEvent,
  parseStructuredCloudEvent,
  readAttribute,
  type StructuredCloudEvent,
} from './context-headers-cloudevent.ts';
import {
  FORWARD_TOTAL_MAX_LENGTH,
  faultOfEventId,
  faultOfEventType,
  faultOfForwarded,
  faultOfGroupKey,
} from './context-headers-limits.ts';
import { faultsOfOwnHeaders, ownHeadersOf } from './context-headers-own.ts';
import { decodeCloudEventHeader, decodeUtf8Header, isHeaderRepeated } from './context-headers-text.ts';

/** Request headers read by a stream. The first header that is present is used. */
export interface ContextHeaders {
  readonly eventType: readonly string[];
  readonly groupKey: readonly string[];
  readonly eventId: readonly string[];
  readonly forward: readonly string[];
}

/** A header. For structured CloudEvents, this is the attribute with the same name. */
interface Source {
  readonly header: string;
  readonly attribute: string | undefined;
}

/** A stream's context headers and event types, prepared so they can be used for many events. */
export interface ExtractionRules {
  readonly eventType: readonly Source[];
  readonly groupKey: readonly Source[];
  readonly eventId: readonly Source[];
  readonly forward: readonly string[];
  readonly eventTypes: ReadonlySet<string>;
  /** `ce-` headers that can also be used in requests which are not CloudEvents. */
  readonly plain: ReadonlySet<string>;
  /** The `x-sluice-` headers allowed in a request. */
  readonly own: ReadonlySet<string>;
}

/**
 * The parts of a request used to determine the context. The names in `headers` are in lowercase. In `rawHeaders`, each
 * name is followed by its value.
 */
interface RequestContext {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly rawHeaders: readonly string[];
  readonly body: Uint8Array;
}

/**
 * The context of an event. `id` is undefined if it was not set by the sender. The values in `forward` are stored as
 * latin1 text.
 */
export interface EventContext {
  readonly id: string | undefined;
  readonly type: string | undefined;
  readonly groupKey: string | undefined;
  readonly forward: Record<string, string>;
  /** The attributes of a CloudEvent sent in binary mode. */
  readonly attributes?: BinaryAttributes;
}

/** The reason why the context of a request is not valid: a problem code and the errors for each header or attribute. */
interface ContextRefusal {
  readonly code: ProblemCode;
  readonly errors: readonly ProblemError[];
  /** The required change. Only set if the remedy of the code is not specific enough. */
  readonly detail?: string;
}

/** `ce-` headers that can be used for any stream even if the request is not a CloudEvent. */
const PLAIN = ['ce-id', 'ce-type', 'ce-partitionkey'];

/**
 * Prepares a stream's lists, converting names to lowercase, filling in defaults for missing lists, and removing
 * credentials. An empty list means that no header will be read.
 */
export function compileExtraction(
  contextHeaders: Partial<ContextHeaders>,
  eventTypes: readonly string[],
): ExtractionRules {
  const names = (list: keyof ContextHeaders): string[] => {
    const chosen = contextHeaders[list] ?? CONTEXT_HEADER_DEFAULTS[list];
    return [...new Set(chosen.map(name => name.toLowerCase()))].filter(name => !isUnread(name));
  };
  const sources = (list: keyof ContextHeaders): Source[] =>
    names(list).map(header => ({ header, attribute: header.startsWith('ce-') ? header.slice(3) : undefined }));
  const read = { eventType: sources('eventType'), groupKey: sources('groupKey'), eventId: sources('eventId') };
  const listed = Object.values(read).flatMap(list => list.map(({ header }) => header));
  return {
    ...read,
    forward: names('forward'),
    eventTypes: new Set(eventTypes),
    // A request with `ce-specversion` is always a CloudEvent, even when the stream lists this header.
    plain: new Set([...PLAIN, ...listed].filter(header => header !== 'ce-specversion')),
    own: ownHeadersOf([...names('eventType'), ...names('groupKey'), ...names('eventId'), ...names('forward')]),
  };
}

/** The CloudEvent sent in a request. In structured mode, `event` is set. In binary mode, `attributes` is set. */
interface CloudEventParts {
  readonly event?: StructuredCloudEvent;
  readonly attributes?: BinaryAttributes;
}

/**
 * Reads the CloudEvent from a request and validates it. The content type determines whether it is in structured mode.
 */
function readCloudEvent(rules: ExtractionRules, request: RequestContext): CloudEventParts | ContextRefusal {
  const contentType = request.headers['content-type'];
  const code = 'malformed_cloudevent';
  if (typeof contentType === 'string' && isStructuredCloudEvent(contentType)) {
    const event = parseStructuredCloudEvent(request.body);
    if (event === 'malformed') return { code: 'malformed_body', errors: [], detail: NOT_JSON };
    if (event === 'invalid')
      return { code, errors: [{ pointer: '', detail: 'must be a CloudEvent as a JSON object' }] };
    const errors = faultsOfStructured(event);
    return errors.length > 0 ? { code, errors } : { event };
  }
  const errors: ProblemError[] = [];
  const attributes = readBinaryCloudEvent(request.headers, request.rawHeaders, rules.plain, errors);
  if (errors.length > 0) return { code, errors };
  return attributes === undefined ? {} : { attributes };
}

const NOT_JSON = 'With the content type application/cloudevents+json, the body must be a CloudEvent in JSON and UTF-8.';

/**
 * Reads the id, type, group key, and the headers to forward from a request. The first source that is present is used
 * even if it is empty. If its value is invalid, the request is rejected with 422. For a structured CloudEvent, `ce-`
 * sources refer to the attributes of the event. The body is left unchanged. In binary mode, we keep all of the
 * attributes.
 */
export function extractContext(rules: ExtractionRules, request: RequestContext): EventContext | ContextRefusal {
  const contentType = request.headers['content-type'];
  const cloudEvent = readCloudEvent(rules, request);
  if ('code' in cloudEvent) return cloudEvent;
  const { event, attributes } = cloudEvent;
  const errors = faultsOfOwnHeaders(rules.own, request.headers);
  const type = lift(rules.eventType, request, event, faultOfEventType, errors);
  const groupKey = lift(rules.groupKey, request, event, faultOfGroupKey, errors);
  const id = lift(rules.eventId, request, event, faultOfEventId, errors);
  const forward = liftForwarded(rules.forward, request, errors);
  const typeFault = typeof contentType === 'string' ? faultOfForwarded(contentType) : undefined;
  if (typeFault !== undefined) errors.push({ header: 'content-type', detail: typeFault });
  if (errors.length > 0) return { code: 'invalid_context', errors };
  if (rules.eventTypes.size > 0 && (type === undefined || !rules.eventTypes.has(type))) {
    return { code: 'unknown_event_type', errors: [faultOfUnknownType(rules, request, event)] };
  }
  return { id, type, groupKey, forward, ...(attributes === undefined ? {} : { attributes }) };
}

function lift(
  sources: readonly Source[],
  request: RequestContext,
  event: StructuredCloudEvent | undefined,
  faultOf: (value: string) => string | undefined,
  errors: ProblemError[],
): string | undefined {
  for (const { header, attribute } of sources) {
    if (event !== undefined && attribute !== undefined) {
      const value = readAttribute(event, attribute);
      if (value === undefined) continue;
      const fault = value === null ? 'must be a string' : faultOf(value);
      if (fault === undefined) return value ?? undefined;
      errors.push({ pointer: `/${attribute}`, detail: fault });
      return undefined;
    }
    const sent = request.headers[header];
    if (typeof sent !== 'string') continue;
    const value = attribute === undefined ? decodeUtf8Header(sent) : decodeCloudEventHeader(sent);
    const fault =
      // Node joins repeated headers with a comma. Two group keys would end up as a third one.
      sent.includes(', ') && isHeaderRepeated(request.rawHeaders, header)
        ? 'was sent more than once'
        : value === undefined
          ? faultOfEncoding(attribute)
          : faultOf(value);
    if (fault === undefined) return value;
    errors.push({ header, detail: fault });
    return undefined;
  }
  return undefined;
}

function faultOfEncoding(attribute: string | undefined): string {
  return attribute === undefined
    ? 'is not valid UTF-8'
    : 'is not valid percent-encoded UTF-8 (CloudEvents HTTP binding)';
}

function liftForwarded(
  names: readonly string[],
  request: RequestContext,
  errors: ProblemError[],
): Record<string, string> {
  const forward: Record<string, string> = {};
  let total = 0;
  for (const name of names) {
    const value = request.headers[name];
    if (typeof value !== 'string') continue;
    const fault = faultOfForwarded(value);
    total += name.length + value.length;
    if (fault !== undefined) errors.push({ header: name, detail: fault });
    else forward[name] = value;
  }
  if (total > FORWARD_TOTAL_MAX_LENGTH) {
    errors.push({ detail: 'all forwarded headers together are longer than 8,192 bytes' });
  }
  return forward;
}

function faultOfUnknownType(
  rules: ExtractionRules,
  { headers }: RequestContext,
  event: StructuredCloudEvent | undefined,
): ProblemError {
  const declared = [...rules.eventTypes].slice(0, 10).join(', ');
  const more = rules.eventTypes.size > 10 ? ', …' : '';
  const isAttribute = ({ attribute }: Source): boolean => event !== undefined && attribute !== undefined;
  const used = rules.eventType.find(source =>
    isAttribute(source)
      ? readAttribute(event as StructuredCloudEvent, source.attribute as string) !== undefined
      : typeof headers[source.header] === 'string',
  );
  const source = used ?? rules.eventType[0];
  const place = source && (isAttribute(source) ? { pointer: `/${source.attribute}` } : { header: source.header });
  return {
    ...place,
    detail: `${used === undefined ? 'the event type is missing' : 'the stream does not accept this event type'}; declared: ${declared}${more}`,
  };
}

import { publicId, tenantId } from '../../core/ids/ids.ts';
import { parsePublicEventId } from '../../core/ids/public-event-id.ts';
import { parseTraceparent } from '../../telemetry/tracing.ts';
import type { Identity } from '../auth/identity.ts';
import type { AccessGiven } from './access.ts';
import { type Change, describeChange } from './changes.ts';
import { type Redact, redactValue } from './redaction.ts';

/** The object affected by a call. */
export interface AuditedObject {
  readonly kind: string;
  readonly namespace?: string | undefined;
  readonly name: string;
}

/** The information available about a call after its response has been sent. */
export interface CallFacts {
  readonly operation: string;
  readonly identity: Identity;
  /**
   * The entry that gave the caller access to the resource. Undefined if the call requires no access, or if its access
   * was not checked before the response.
   */
  readonly access?: AccessGiven | undefined;
  /** Valid path parameters. */
  readonly params: Readonly<Record<string, string>>;
  /** Validated body of a call to the data plane. The body contains the range of events. */
  readonly body?: unknown;
  readonly about?: AuditedObject | undefined;
  readonly changes: readonly Change[];
  readonly status: number;
  /** Problem code. Not set if the call was successful. */
  readonly code?: string | undefined;
  /** Id generated for this request. */
  readonly requestId: string;
  /** `traceparent` header (W3C Trace Context). */
  readonly traceparent: string | undefined;
  readonly durationMs: number;
}

/** Returns the caller in the format used for audit lines. */
export function callerFields({ issuer, subject, client }: Identity, redact: Redact): object {
  return { issuer, subject: redact(subject, true), ...(client === undefined ? {} : { client: redact(client, true) }) };
}

/** Returns the caller's trace id. Note that callers can choose any id. */
export function traceFields(traceparent: string | undefined): { readonly traceId?: string } {
  const traceId = parseTraceparent(traceparent)?.traceId;
  return traceId === undefined ? {} : { traceId };
}

const ID_KINDS = ['CatalogStream', 'Package', 'Integration', 'Subscription', 'Account'] as const;

/** Returns an object's public id. Only works for kinds whose id is derived from the name. */
function publicIdOf({ kind, namespace = '', name }: AuditedObject): { readonly publicId?: string } {
  if (kind === 'Workspace') return { publicId: tenantId(name) };
  const known = ID_KINDS.find(each => each === kind);
  return known === undefined ? {} : { publicId: publicId(known, namespace, name) };
}

/**
 * Returns the subscription for a call to the data plane. The call includes either the id of the subscription, or the id
 * of one of its events.
 */
function subscriptionOf(params: CallFacts['params'], body: unknown): string | undefined {
  const { subscription, upTo } = (body ?? {}) as { readonly subscription?: unknown; readonly upTo?: unknown };
  const named = params['subscription'] ?? subscription;
  if (typeof named === 'string') return named;
  const event = params['event'] ?? upTo;
  return typeof event === 'string' ? parsePublicEventId(event)?.subscription : undefined;
}

function aboutFields({ about, params, body }: CallFacts): object {
  if (about !== undefined) return { about: { ...about, ...publicIdOf(about) } };
  const subscription = subscriptionOf(params, body);
  return subscription === undefined ? {} : { about: { kind: 'Subscription', publicId: subscription } };
}

/** Returns the audit line of a call, not including the time. */
export function callLine(facts: CallFacts, redact: Redact): object {
  const { operation, identity, access, params, body, status, code, requestId, durationMs } = facts;
  const changes = facts.changes.flatMap(change => describeChange(change, redact) ?? []);
  return {
    msg: 'call',
    ...callerFields(identity, redact),
    ...(access === undefined ? {} : { access }),
    operation,
    params: redactValue(params, redact),
    ...(body === undefined ? {} : { request: redactValue(body, redact) }),
    ...aboutFields(facts),
    ...(changes.length === 0 ? {} : { changes }),
    status,
    ...(code === undefined ? {} : { code }),
    requestId,
    ...traceFields(facts.traceparent),
    durationMs: Math.round(durationMs),
  };
}

import { createHash } from 'node:crypto';
import type { Logger } from '../telemetry/log.ts';
import { parseTraceparent } from '../telemetry/tracing.ts';
import type { Identity } from './auth/identity.ts';
import type { Answer } from './contract/route.ts';

/** AuditFacts contains the audit data of a mutating call. */
interface AuditFacts {
  readonly operation: string;
  readonly identity: Identity;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
  /** The problem code. This will not be set if the call was successful. */
  readonly code?: string;
  readonly about?: Answer['about'];
  /**
   * The trace id from `traceparent` (W3C Trace Context). If the header is not set, an id is generated for the request.
   */
  readonly traceId: string;
  readonly durationMs: number;
}

/**
 * Returns the hash of a subject or client for use in the log. It is hashed because many providers use the e-mail
 * address, which is personal data.
 */
function loggable(name: string): string {
  if (!name.includes('@')) return name;
  return `sha256:${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}

/**
 * Logs a line with the caller, the call, the object and the outcome of each mutating call. Make sure that the line does
 * not contain any secrets or addresses.
 */
export function writeAuditLine(log: Logger, facts: AuditFacts): void {
  const { identity, durationMs, ...rest } = facts;
  log.info(
    {
      audit: true,
      issuer: identity.issuer,
      subject: loggable(identity.subject),
      ...(identity.client === undefined ? {} : { client: loggable(identity.client) }),
      ...rest,
      durationMs: Math.round(durationMs),
    },
    'call',
  );
}

/** Returns the trace id of a `traceparent` header. If the header is missing or invalid, `fallback` is returned. */
export function traceIdOf(traceparent: string | undefined, fallback: string): string {
  return parseTraceparent(traceparent)?.traceId ?? fallback;
}

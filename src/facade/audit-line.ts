import { createHash } from 'node:crypto';
import type { Logger } from '../telemetry/log.ts';
import { parseTraceparent } from '../telemetry/tracing.ts';
import type { Identity } from './auth/identity.ts';
import type { Answer } from './contract/route.ts';

/** AuditFacts contains audit data for a mutating call. */
interface AuditFacts {
  readonly operation: string;
  readonly identity: Identity;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
  /** Problem code. Not set if the call was successful. */
  readonly code?: string;
  readonly about?: Answer['about'];
  /**
   * Trace id taken from `traceparent` (W3C Trace Context), or an id generated for this request if that header is not
   * set.
   */
  readonly traceId: string;
  readonly durationMs: number;
}

/**
 * Returns the hash of a subject or client for use in logs. Many providers put the e-mail address here, which is
 * personal data, so we never log the value itself.
 */
function loggable(name: string): string {
  if (!name.includes('@')) return name;
  return `sha256:${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}

/**
 * Logs one line per mutating call, including caller, call, object, and outcome. The line must not contain any secrets
 * or addresses.
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

/** Returns the trace id from a `traceparent` header, or `fallback` if that is missing or invalid. */
export function traceIdOf(traceparent: string | undefined, fallback: string): string {
  return parseTraceparent(traceparent)?.traceId ?? fallback;
}

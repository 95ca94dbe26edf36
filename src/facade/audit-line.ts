import { createHash } from 'node:crypto';
import type { Logger } from '../telemetry/log.ts';
import { parseTraceparent } from '../telemetry/tracing.ts';
import type { Identity } from './auth/identity.ts';
import type { Answer } from './contract/route.ts';

/** The audit record of one mutating call. */
interface AuditFacts {
  readonly operation: string;
  readonly identity: Identity;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
  /** Problem code; absent on success. */
  readonly code?: string;
  readonly about?: Answer['about'];
  /** From `traceparent` (W3C Trace Context), else generated for this request. */
  readonly traceId: string;
  readonly durationMs: number;
}

/** Returns a subject or a client for the log, hashed: many providers use the e-mail address, which is personal data. */
function loggable(name: string): string {
  if (!name.includes('@')) return name;
  return `sha256:${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}

/** Logs one line for each call that may change something: caller, call, object, outcome. No secrets, no addresses. */
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

/** Returns the trace id of a `traceparent` header; `fallback` if it is missing or invalid. */
export function traceIdOf(traceparent: string | undefined, fallback: string): string {
  return parseTraceparent(traceparent)?.traceId ?? fallback;
}

import { createHash } from 'node:crypto';
import type { Logger } from '../telemetry/log.ts';
import { parseTraceparent } from '../telemetry/tracing.ts';
import type { Identity } from './auth/identity.ts';
import type { Answer } from './contract/route.ts';

/** One mutating call, as it is written down. */
export interface AuditFacts {
  readonly operation: string;
  readonly identity: Identity;
  readonly params: Readonly<Record<string, string>>;
  readonly status: number;
  /** Of the problem; absent after a success. */
  readonly code?: string;
  readonly about?: Answer['about'];
  /** Of `traceparent` (W3C Trace Context), else of this request alone. */
  readonly traceId: string;
  readonly durationMs: number;
}

/** A subject or a client as it may be logged: many providers use the e-mail address, which is personal data. */
function loggable(name: string): string {
  if (!name.includes('@')) return name;
  return `sha256:${createHash('sha256').update(name).digest('hex').slice(0, 16)}`;
}

/** One line for each call that may change something: who, what, which object, with what outcome. No secrets, no addresses. */
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

/** The trace id of a `traceparent` header; `fallback` when there is none that can be read. */
export function traceIdOf(traceparent: string | undefined, fallback: string): string {
  return parseTraceparent(traceparent)?.traceId ?? fallback;
}

import type { Clock } from '../../time/clock.ts';
import type { Identity } from '../auth/identity.ts';
import { type CallFacts, callerFields, callLine, traceFields } from './audit-line.ts';
import { createRedact, redactValue } from './redaction.ts';
import { createRefusedCalls, type RefusedCall } from './refused-calls.ts';

/** The information available about a call rejected with 401 or 403. */
export interface RefusedFacts extends RefusedCall {
  /** Undefined if the token was rejected. */
  readonly identity: Identity | undefined;
  /** Undefined if there is no route for the path. */
  readonly operation: string | undefined;
  readonly params: Readonly<Record<string, string>>;
  readonly requestId: string;
  readonly traceparent: string | undefined;
}

/** Writes the audit lines. Audit lines do not depend on the log level. */
export interface AuditTrail {
  readonly call: (facts: CallFacts) => void;
  readonly refused: (facts: RefusedFacts) => void;
  /** Writes the calls which have only been counted so far. */
  readonly flush: () => void;
}

/**
 * Returns a single line of the audit stream. You can use the first fields to distinguish it from log lines in the same
 * output.
 */
export function auditLine(wallMs: number, fields: object): string {
  const time = new Date(wallMs).toISOString();
  return `${JSON.stringify({ level: 'info', time, role: 'facade', audit: true, ...fields })}\n`;
}

export function createAuditTrail(options: {
  readonly rootKey: Uint8Array;
  readonly clock: Clock;
  readonly write: (line: string) => void;
}): AuditTrail {
  const { clock } = options;
  const redact = createRedact(options.rootKey);
  const write = (fields: object) => options.write(auditLine(clock.wallMs(), fields));
  const refusedCalls = createRefusedCalls(write, clock);
  return {
    call: facts => write(callLine(facts, redact)),
    refused: facts =>
      refusedCalls.note(facts, () => ({
        msg: 'refused call',
        ...(facts.identity === undefined ? {} : callerFields(facts.identity, redact)),
        ...(facts.operation === undefined
          ? {}
          : { operation: facts.operation, params: redactValue(facts.params, redact) }),
        status: facts.status,
        reason: facts.reason,
        ...(facts.network === undefined ? {} : { network: facts.network }),
        requestId: facts.requestId,
        ...traceFields(facts.traceparent),
      })),
    flush: refusedCalls.flush,
  };
}

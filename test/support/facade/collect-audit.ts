import { type AuditTrail, createAuditTrail } from '../../../src/facade/audit/audit-trail.ts';
import { systemClock } from '../../../src/time/clock.ts';

export const AUDIT_KEY = Buffer.alloc(32, 7);

export type AuditFields = Readonly<Record<string, unknown>>;

/** An audit trail that stores its lines. */
export function collectAudit(): { readonly trail: AuditTrail; readonly lines: AuditFields[] } {
  const lines: AuditFields[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as AuditFields);
  return { trail: createAuditTrail({ rootKey: AUDIT_KEY, clock: systemClock, write }), lines };
}

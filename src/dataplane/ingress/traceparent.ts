import { TRACEPARENT } from '../../telemetry/tracing.ts';

/**
 * If the `traceparent` header is valid (W3C Trace Context, 3.2), this returns its value. Invalid headers must be
 * ignored (4.3), so we return undefined for those.
 */
export function readTraceparent(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && TRACEPARENT.test(header) ? header : undefined;
}

import { TRACEPARENT } from '../../telemetry/tracing.ts';

/**
 * Returns the value of a `traceparent` header if it is valid (W3C Trace Context, 3.2). An invalid header is ignored
 * (4.3) and undefined is returned.
 */
export function readTraceparent(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && TRACEPARENT.test(header) ? header : undefined;
}

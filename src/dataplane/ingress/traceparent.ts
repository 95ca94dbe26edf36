import { TRACEPARENT } from '../../telemetry/tracing.ts';

/** A `traceparent` header if it is valid (W3C Trace Context, 3.2), else undefined: an invalid one is ignored (4.3). */
export function readTraceparent(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' && TRACEPARENT.test(header) ? header : undefined;
}

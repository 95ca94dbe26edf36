import type { Span, Tracing } from '../../telemetry/tracing.ts';
import type { StoredEvent } from './deliver.ts';
import type { AttemptResult } from './endpoint-client.ts';
import type { OpenSubscription } from './subscription.ts';

/** Delivery the attempt belongs to. */
export interface AttemptOf {
  readonly subscription: OpenSubscription;
  readonly event: StoredEvent;
  /** The number of attempts that have been made before this one. */
  readonly attempts: number;
}

/**
 * Starts the client span of an attempt. The span is part of the trace of the accepted event. Only the host of the
 * endpoint URL is recorded, since webhook paths and queries may contain secrets.
 */
export function startAttemptSpan(tracing: Tracing, { subscription, event, attempts }: AttemptOf): Span {
  const { source, endpoint } = subscription;
  const { hostname, port, protocol } = new URL(endpoint.url);
  return tracing.start('POST', {
    kind: 'client',
    parent: event.meta.traceparent,
    attributes: {
      'http.request.method': 'POST',
      'server.address': hostname,
      'server.port': Number(port || (protocol === 'https:' ? 443 : 80)),
      ...(attempts === 0 ? {} : { 'http.request.resend_count': attempts }),
      'messaging.system': 'sluice',
      'messaging.operation.name': 'deliver',
      'messaging.operation.type': 'send',
      'messaging.destination.name': source.queue,
      'messaging.message.body.size': event.body.length,
      'sluice.tenant': source.tenant,
    },
  });
}

export function endAttemptSpan(span: Span, { outcome, reason, status, isUnsent }: AttemptResult): void {
  if (isUnsent) return span.end({ attributes: { 'sluice.outcome': 'released' } });
  span.end({
    attributes: { 'sluice.outcome': outcome, ...(status === undefined ? {} : { 'http.response.status_code': status }) },
    error: outcome === 'delivered' ? undefined : status === undefined ? reason : `${status}`,
  });
}

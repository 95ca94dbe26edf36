import { type Attributes, DiagLogLevel, diag, ROOT_CONTEXT, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type SpanExporter,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { withDeadline } from '../time/deadline.ts';
import type { Logger } from './log.ts';
import { parseTraceparent, type SpanStart, type Tracing } from './tracing.ts';
import type { TracingConfig } from './tracing-config.ts';

/** The time to wait for the collector when stopping. */
const STOP_WITHIN_MS = 3_000;
/** The minimum interval between log lines about failed exports. */
const SAID_EVERY_MS = 60_000;

const KINDS: Readonly<Record<SpanStart['kind'], SpanKind>> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  consumer: SpanKind.CONSUMER,
  internal: SpanKind.INTERNAL,
};

/**
 * Opens OpenTelemetry tracing to a collector over OTLP/HTTP. Spans are sent in batches in the background. Spans are
 * dropped if the collector does not accept them in time. This file loads the whole SDK, so it should only be imported
 * if tracing is on.
 */
export async function openTracing(
  config: TracingConfig,
  options: { readonly version: string; readonly log: Logger },
): Promise<Tracing> {
  const say = sayFailures(options.log);
  const exporter = await createExporter(config);
  const sampler = new TraceIdRatioBasedSampler(config.sampler.ratio);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({ ...config.attributes, 'service.version': options.version }),
    sampler: config.sampler.parentBased ? new ParentBasedSampler({ root: sampler }) : sampler,
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: 8_192,
        scheduledDelayMillis: config.delayMs,
      }),
    ],
  });
  const tracer = provider.getTracer('sluice', options.version);

  return {
    start(name, { kind, parent, attributes, startMs }) {
      const of = parseTraceparent(parent);
      const remote = of && { traceId: of.traceId, spanId: of.spanId, traceFlags: of.flags, isRemote: true };
      const span = tracer.startSpan(
        name,
        {
          kind: KINDS[kind],
          ...(attributes === undefined ? {} : { attributes: attributes as Attributes }),
          ...(startMs === undefined ? {} : { startTime: startMs }),
        },
        remote === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, remote),
      );
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceId,
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        end(outcome) {
          if (outcome?.attributes !== undefined) span.setAttributes(outcome.attributes as Attributes);
          if (outcome?.error !== undefined) {
            span.setAttribute('error.type', outcome.error);
            span.setStatus({ code: SpanStatusCode.ERROR });
          }
          span.end();
        },
      };
    },
    async stop() {
      await withDeadline(STOP_WITHIN_MS, () => provider.shutdown().catch(say)).catch(() => {});
    },
  };
}

async function createExporter({ url, protocol, headers, timeoutMs }: TracingConfig): Promise<SpanExporter> {
  const options = { url, headers: { ...headers }, timeoutMillis: timeoutMs };
  if (protocol === 'http/json') {
    const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-http');
    return new OTLPTraceExporter(options);
  }
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto');
  return new OTLPTraceExporter(options);
}

/** Logs SDK failures, at most once a minute. We leave out the SDK's own messages, since they may quote responses. */
function sayFailures(log: Logger): () => void {
  let quietUntilMs = 0;
  const say = () => {
    const nowMs = performance.now();
    if (nowMs < quietUntilMs) return;
    quietUntilMs = nowMs + SAID_EVERY_MS;
    log.warn('failed to export spans: check OTEL_EXPORTER_OTLP_ENDPOINT and the collector');
  };
  const nothing = () => {};
  diag.setLogger(
    { error: say, warn: say, info: nothing, debug: nothing, verbose: nothing },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  return say;
}

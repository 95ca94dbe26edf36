/** Attributes of a span. Names follow the semantic conventions of OpenTelemetry if one exists. */
type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  /** server, client: an HTTP call; consumer: work on a stored event; internal: anything else. */
  readonly kind: 'server' | 'client' | 'consumer' | 'internal';
  /** `traceparent` (W3C Trace Context) of the parent; undefined starts a trace. */
  readonly parent?: string | undefined;
  readonly attributes?: SpanAttributes;
  /** Start, ms since the epoch. Default: now. */
  readonly startMs?: number;
}

export interface Span {
  readonly traceId: string;
  /** `traceparent` that names this span as the parent. */
  readonly traceparent: string;
  /** Ends the span; call once. `error`: why it failed, as one stable word. */
  readonly end: (outcome?: { readonly attributes?: SpanAttributes; readonly error?: string | undefined }) => void;
}

/** Creates spans. If tracing is off, callers have `undefined` instead. */
export interface Tracing {
  readonly start: (name: string, span: SpanStart) => Span;
  /** Exports finished spans, within some seconds. */
  readonly stop: () => Promise<void>;
}

/** A valid `traceparent` header (W3C Trace Context, 3.2). */
export const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses a `traceparent` header. Returns undefined if it is invalid. */
export function parseTraceparent(
  text: string | undefined,
): { readonly traceId: string; readonly spanId: string; readonly flags: number } | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** Returns whether the trace of a `traceparent` is recorded. */
export function isSampled(traceparent: string | undefined): boolean {
  return ((parseTraceparent(traceparent)?.flags ?? 0) & 1) === 1;
}

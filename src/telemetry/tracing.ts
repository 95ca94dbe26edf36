/** The attributes of a span. Names follow the semantic conventions of OpenTelemetry if one exists. */
type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  /**
   * `server` and `client` are used for HTTP calls, `consumer` is used for work on a stored event, and `internal` is
   * used for anything else.
   */
  readonly kind: 'server' | 'client' | 'consumer' | 'internal';
  /** Parent's `traceparent` (W3C Trace Context). If undefined, a new trace is started. */
  readonly parent?: string | undefined;
  readonly attributes?: SpanAttributes;
  /** The start time of the span, in milliseconds since the epoch. Defaults to now. */
  readonly startMs?: number;
}

export interface Span {
  readonly traceId: string;
  /** `traceparent` with this span as the parent. */
  readonly traceparent: string;
  /**
   * Ends this span. Must only be called once. If the operation has failed, `error` should be a single stable word for
   * the reason.
   */
  readonly end: (outcome?: { readonly attributes?: SpanAttributes; readonly error?: string | undefined }) => void;
}

/** Creates spans. Callers have `undefined` instead if tracing is off. */
export interface Tracing {
  readonly start: (name: string, span: SpanStart) => Span;
  /** Exports all finished spans. Takes a few seconds at most. */
  readonly stop: () => Promise<void>;
}

/** A valid `traceparent` header (W3C Trace Context, 3.2). */
export const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** Parses the value of a `traceparent` header. Returns undefined if it is not valid. */
export function parseTraceparent(
  text: string | undefined,
): { readonly traceId: string; readonly spanId: string; readonly flags: number } | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

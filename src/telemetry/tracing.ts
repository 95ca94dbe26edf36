/** What is told of a span beside its name; names follow OpenTelemetry's semantic conventions where there are any. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanStart {
  /** server and client: of an HTTP call; consumer: works on what was stored; internal: anything else. */
  readonly kind: 'server' | 'client' | 'consumer' | 'internal';
  /** `traceparent` (W3C Trace Context) of what it continues; undefined begins a trace. */
  readonly parent?: string | undefined;
  readonly attributes?: SpanAttributes;
  /** When it began, ms since the epoch; now when absent. */
  readonly startMs?: number;
}

export interface Span {
  readonly traceId: string;
  /** What names this span as the parent of whatever continues it. */
  readonly traceparent: string;
  /** Once. `error`: why it failed, as one stable word. */
  readonly end: (outcome?: { readonly attributes?: SpanAttributes; readonly error?: string | undefined }) => void;
}

/** Makes spans. Where tracing is off there is none of it: who could make spans has `undefined` instead. */
export interface Tracing {
  readonly start: (name: string, span: SpanStart) => Span;
  /** Hands over what is finished, within some seconds. */
  readonly stop: () => Promise<void>;
}

/** A valid `traceparent` header (W3C Trace Context, 3.2). */
export const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})$/;

/** The parts of a `traceparent` header that is valid. */
export function parseTraceparent(
  text: string | undefined,
): { readonly traceId: string; readonly spanId: string; readonly flags: number } | undefined {
  const [, traceId, spanId, flags] = TRACEPARENT.exec(text ?? '') ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return { traceId, spanId, flags: Number.parseInt(flags, 16) };
}

/** Whether somebody records the trace that a `traceparent` belongs to. */
export function isSampled(traceparent: string | undefined): boolean {
  return ((parseTraceparent(traceparent)?.flags ?? 0) & 1) === 1;
}

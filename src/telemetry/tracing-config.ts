/**
 * The share of traces to be recorded. If `parentBased` is set and the trace has a parent, the parent's decision is
 * used.
 */
export interface SamplerConfig {
  readonly parentBased: boolean;
  /** 0 to 1. */
  readonly ratio: number;
}

/** The settings for exporting spans. */
export interface TracingConfig {
  /** Traces URL of the collector, e.g. `http://collector:4318/v1/traces`. */
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly headers: Readonly<Record<string, string>>;
  /** The timeout for each export. */
  readonly timeoutMs: number;
  /** The time to wait between two exports. */
  readonly delayMs: number;
  readonly sampler: SamplerConfig;
  /** Resource attributes, including `service.name`. */
  readonly attributes: Readonly<Record<string, string>>;
}

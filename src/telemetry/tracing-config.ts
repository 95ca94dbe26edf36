/** Share of traces to be recorded. With `parentBased`, a trace with a parent keeps its parent's decision. */
export interface SamplerConfig {
  readonly parentBased: boolean;
  /** 0 to 1. */
  readonly ratio: number;
}

/** Export of spans. */
export interface TracingConfig {
  /** Traces URL of the collector, e.g. `http://collector:4318/v1/traces`. */
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly headers: Readonly<Record<string, string>>;
  /** Timeout of a single export. */
  readonly timeoutMs: number;
  /** Delay between two exports. */
  readonly delayMs: number;
  readonly sampler: SamplerConfig;
  /** Resource attributes, including `service.name`. */
  readonly attributes: Readonly<Record<string, string>>;
}

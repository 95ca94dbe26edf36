/** Share of the traces that is recorded. `parentBased`: a trace that has a parent keeps the decision of the parent. */
export interface SamplerConfig {
  readonly parentBased: boolean;
  /** 0 to 1. */
  readonly ratio: number;
}

/** Export of spans. */
export interface TracingConfig {
  /** URL of the collector for traces: `http://collector:4318/v1/traces`. */
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly headers: Readonly<Record<string, string>>;
  /** Timeout of one export. */
  readonly timeoutMs: number;
  /** Delay between two exports. */
  readonly delayMs: number;
  readonly sampler: SamplerConfig;
  /** Attributes of the resource, including `service.name`. */
  readonly attributes: Readonly<Record<string, string>>;
}

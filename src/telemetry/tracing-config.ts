/** Which traces are recorded: all, none, or a share; `parentBased`: as whoever began the trace decided. */
export interface SamplerConfig {
  readonly parentBased: boolean;
  /** 0 to 1. */
  readonly ratio: number;
}

/** Where spans go to. */
export interface TracingConfig {
  /** Of the collector's traces: `http://collector:4318/v1/traces`. */
  readonly url: string;
  readonly protocol: 'http/protobuf' | 'http/json';
  readonly headers: Readonly<Record<string, string>>;
  /** Of one export. */
  readonly timeoutMs: number;
  /** How long spans are gathered before they are sent. */
  readonly delayMs: number;
  readonly sampler: SamplerConfig;
  /** Of the resource; `service.name` is among them. */
  readonly attributes: Readonly<Record<string, string>>;
}

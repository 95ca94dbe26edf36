import type { Simulation } from '../delivery/simulation.ts';
import { refMs } from '../ids/refs.ts';

/** Metadata of an event in its queue. The names are short because every event stores them. */
export interface StoredEventMeta {
  /** Event id from the producer. */
  i: string;
  /** Event type. */
  t?: string;
  /** Content type. */
  c?: string;
  /** traceparent (W3C Trace Context). */
  p?: string;
  /** Forwarded context headers. */
  f?: Record<string, string>;
  /** CloudEvents `source` of the queue, for events that are not CloudEvents. */
  s: string;
  /**
   * Attributes of a CloudEvent in binary mode, as sent. Absent: not a CloudEvent, or its attributes are in the body.
   */
  a?: Record<string, string>;
  /** For an event of a sandbox run: the answers of its simulated endpoints. */
  x?: Simulation;
}

/** The metadata of an event, without its body. */
export interface EventMeta {
  readonly id: string;
  readonly type?: string;
  readonly groupKey: string;
  /** When ingress accepted it, ms since the epoch. */
  readonly time: number;
  readonly contentType?: string;
  /** CloudEvents `source` (a URI reference) for an event that is not a CloudEvent. */
  readonly source: string;
  /** Attributes of a CloudEvent in binary mode: names without `ce-`, values as sent, latin1. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly traceparent?: string;
  /** Forwarded context headers of the producer's request. */
  readonly forward?: Readonly<Record<string, string>>;
}

export function parseEventMeta(stored: string, groupKey: string, ref: string): EventMeta {
  const { i, s, t, c, p, f, a } = JSON.parse(stored) as StoredEventMeta;
  const meta: { -readonly [K in keyof EventMeta]: EventMeta[K] } = { id: i, groupKey, time: refMs(ref), source: s };
  if (t !== undefined) meta.type = t;
  if (c !== undefined) meta.contentType = c;
  if (p !== undefined) meta.traceparent = p;
  if (f !== undefined) meta.forward = f;
  if (a !== undefined) meta.attributes = a;
  return meta;
}

/** Returns the answers of the simulated endpoints of a sandbox event. Default: success. */
export function parseSimulation(stored: string): Simulation {
  return (JSON.parse(stored) as StoredEventMeta).x ?? {};
}

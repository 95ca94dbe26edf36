import type { Simulation } from '../delivery/simulation.ts';
import { refMs } from '../ids/refs.ts';

/** The metadata of an event in its queue. The names are short because they are stored with every event. */
export interface StoredEventMeta {
  /** The event id from the producer. */
  i: string;
  /** The event type. */
  t?: string;
  /** The content type. */
  c?: string;
  /** traceparent (W3C Trace Context). */
  p?: string;
  /** The forwarded context headers. */
  f?: Record<string, string>;
  /** The CloudEvents `source` of the queue for events that are not CloudEvents. */
  s: string;
  /**
   * The attributes of a CloudEvent in binary mode, as the producer sent them. The field is absent if the event is not a
   * CloudEvent or if its attributes are in the body.
   */
  a?: Record<string, string>;
  /** The responses of the simulated endpoints for an event of a sandbox run. */
  x?: Simulation;
}

/** The metadata of an event, without its body. */
export interface EventMeta {
  readonly id: string;
  readonly type?: string;
  readonly groupKey: string;
  /** The time when ingress accepted the event, in milliseconds since the epoch. */
  readonly time: number;
  readonly contentType?: string;
  /** CloudEvents `source` (a URI reference) for an event that is not a CloudEvent. */
  readonly source: string;
  /**
   * The attributes of a CloudEvent in binary mode. The names do not include `ce-`, and the values are unchanged latin1
   * text.
   */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly traceparent?: string;
  /** The forwarded context headers of the producer's request. */
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

/** Returns the responses of the simulated endpoints for a sandbox event. By default, the responses are successful. */
export function parseSimulation(stored: string): Simulation {
  return (JSON.parse(stored) as StoredEventMeta).x ?? {};
}

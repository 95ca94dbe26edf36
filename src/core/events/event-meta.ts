import type { Simulation } from '../delivery/simulation.ts';
import { refMs } from '../ids/refs.ts';

/** The event metadata in its queue. The names are short because they are stored with every event. */
export interface StoredEventMeta {
  /**
   * Event id, always the first field. In a part, this is only set if the producer has provided an id. All other ids are
   * derived from the position.
   */
  i?: string;
  /** Event type. */
  t?: string;
  /** Content type. */
  c?: string;
  /** See W3C Trace Context (traceparent). */
  p?: string;
  /** Forwarded context headers. */
  f?: Record<string, string>;
  /** The CloudEvents `source` of the queue, which is used for events that are not CloudEvents. */
  s: string;
  /**
   * The attributes of a CloudEvent in binary mode, exactly as they were sent by the producer. Absent if the event is
   * not a CloudEvent, or if its attributes are in the body.
   */
  a?: Record<string, string>;
  /** Simulated endpoint responses for an event in a sandbox run. */
  x?: Simulation;
}

/** The event metadata. The body is not included. */
export interface EventMeta {
  readonly id: string;
  readonly type?: string;
  readonly groupKey: string;
  /** The time at which the event was accepted by ingress, in milliseconds since the epoch. */
  readonly time: number;
  readonly contentType?: string;
  /** The CloudEvents `source` (which is a URI reference). Used for events that are not CloudEvents. */
  readonly source: string;
  /**
   * The attributes of a CloudEvent in binary mode. The names do not include `ce-`. The values are kept as latin1 text.
   */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly traceparent?: string;
  /** Context headers forwarded from the producer's request. */
  readonly forward?: Readonly<Record<string, string>>;
}

export function parseEventMeta(stored: string, groupKey: string, ref: string): EventMeta {
  const { i, s, t, c, p, f, a } = JSON.parse(stored) as StoredEventMeta;
  const meta: { -readonly [K in keyof EventMeta]: EventMeta[K] } = {
    id: i as string,
    groupKey,
    time: refMs(ref),
    source: s,
  };
  if (t !== undefined) meta.type = t;
  if (c !== undefined) meta.contentType = c;
  if (p !== undefined) meta.traceparent = p;
  if (f !== undefined) meta.forward = f;
  if (a !== undefined) meta.attributes = a;
  return meta;
}

/** Returns the responses of the simulated endpoint for a sandbox event. By default, all of them are successful. */
export function parseSimulation(stored: string): Simulation {
  return (JSON.parse(stored) as StoredEventMeta).x ?? {};
}

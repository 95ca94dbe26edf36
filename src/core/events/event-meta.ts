import type { Simulation } from '../delivery/simulation.ts';
import { refMs } from '../ids/refs.ts';

/** Metadata of an event in its queue. Stored with every event, hence the short names. */
export interface StoredEventMeta {
  /** Event id, always the first field. In a part, only if set by the producer: the others follow from the position. */
  i?: string;
  /** Event type. */
  t?: string;
  /** Content type. */
  c?: string;
  /** See W3C Trace Context (traceparent). */
  p?: string;
  /** Forwarded context headers. */
  f?: Record<string, string>;
  /** CloudEvents `source` of the queue, for events that are not CloudEvents. */
  s: string;
  /**
   * Attributes of a CloudEvent in binary mode, exactly as sent by the producer. Absent if the event isn't a CloudEvent
   * or has its attributes in the body.
   */
  a?: Record<string, string>;
  /** Simulated endpoint responses for an event in a sandbox run. */
  x?: Simulation;
}

/** Metadata of an event, excluding its body. */
export interface EventMeta {
  readonly id: string;
  readonly type?: string;
  readonly groupKey: string;
  /** When ingress accepted the event, in milliseconds since the epoch. */
  readonly time: number;
  readonly contentType?: string;
  /** CloudEvents `source` (a URI reference), for events that are not CloudEvents. */
  readonly source: string;
  /** Attributes of a CloudEvent in binary mode, with names that exclude `ce-` and values left as latin1 text. */
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

/** Returns the simulated endpoint responses for a sandbox event, which are successful by default. */
export function parseSimulation(stored: string): Simulation {
  return (JSON.parse(stored) as StoredEventMeta).x ?? {};
}

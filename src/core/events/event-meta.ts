import type { Simulation } from '../delivery/simulation.ts';
import { refMs } from '../ids/refs.ts';

/** Metadata of an event as its queue keeps it: short names, because it is stored with every event. */
export interface StoredEventMeta {
  /** Event id, as the producer gave it. */
  i: string;
  /** Event type. */
  t?: string;
  /** Content type. */
  c?: string;
  /** traceparent (W3C Trace Context). */
  p?: string;
  /** Forwarded context headers. */
  f?: Record<string, string>;
  /** CloudEvents `source` of the queue, for events that are no CloudEvents. */
  s: string;
  /** Attributes of a CloudEvent in binary mode, as they were sent. Absent: the event is none, or has them in its body. */
  a?: Record<string, string>;
  /** Of an event of a sandbox run: what its simulated endpoints answer. */
  x?: Simulation;
}

/** What is known of an event besides its body. */
export interface EventMeta {
  readonly id: string;
  readonly type?: string;
  readonly groupKey: string;
  /** When ingress accepted it, in ms since the epoch. */
  readonly time: number;
  readonly contentType?: string;
  /** CloudEvents `source` of an event that is no CloudEvent itself, a URI reference. */
  readonly source: string;
  /** Attributes of a CloudEvent in binary mode: names without `ce-`, values as they were sent, latin1. */
  readonly attributes?: Readonly<Record<string, string>>;
  readonly traceparent?: string;
  /** Context headers of the producer's request that are passed on. */
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

/** What the simulated endpoints of a sandbox event answer; nothing is asked for: they succeed. */
export function parseSimulation(stored: string): Simulation {
  return (JSON.parse(stored) as StoredEventMeta).x ?? {};
}

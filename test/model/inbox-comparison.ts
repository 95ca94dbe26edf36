import { generationOf } from '../../src/core/ids.ts';
import { refOfStreamId } from '../../src/core/refs.ts';
import { tokensOf } from '../../src/core/tokens.ts';
import type { inboxKeys } from '../../src/redis/keys.ts';
import { FINALS, type Final, type ModelEvent, RETENTION_MS, type Receiver } from './expectation.ts';
import type { RedisDump } from './redis-dump.ts';
import { hold } from './violation.ts';

/** How far a step brought the routing of a queue. */
export type Routing = 'complete' | 'broken off' | 'untouched';

/** What a comparison needs to know besides the receiver. */
export interface Comparison {
  /** As the story calls the receiver. */
  readonly who: string;
  /** Of its inbox, and of its own hash. */
  readonly keys: ReturnType<typeof inboxKeys> & { readonly own: string };
  readonly nameOf: (ref: string) => string;
  readonly routing: Routing;
  /** May routing have put it there, in this step? */
  readonly mayRoute: (event: ModelEvent) => boolean;
  readonly nowMs: number;
}

type Fields = Readonly<Record<string, string>>;

function noteRouted(receiver: Receiver, event: ModelEvent, routing: Routing): void {
  if (routing === 'broken off') receiver.unsure.set(event.ref, event);
  receiver.undecided.delete(event.ref);
  receiver.routed.add(event.ref);
  receiver.tokens += tokensOf(Buffer.byteLength(event.body));
}

/** What was routed and ended by retention in one step: only the counters tell, and it is the newest that could. */
function noteShortStays(receiver: Receiver, own: Fields, { routing, mayRoute, nowMs }: Comparison): void {
  const unseen = Number(own['n:routed'] ?? 0) - receiver.routed.size;
  if (unseen <= 0) return;
  const old = [...receiver.undecided.values()].filter(
    ({ event, maybe }) =>
      nowMs - event.acceptedMs > RETENTION_MS && event.ref <= (own.last ?? '') && (maybe.has(true) || mayRoute(event)),
  );
  for (const { event } of old.slice(-unseen)) {
    noteRouted(receiver, event, routing);
    receiver.final.set(event.ref, 'expired');
  }
}

/** What came is for it, and was allowed (invariant 1). */
function noteComings(receiver: Receiver, dump: RedisDump, { who, keys, nameOf, routing, mayRoute }: Comparison): void {
  for (const [streamId] of dump.streams.get(keys.log) ?? []) {
    const ref = refOfStreamId(streamId);
    if (receiver.routed.has(ref)) continue;
    const waiting = receiver.undecided.get(ref);
    hold(1, waiting !== undefined && routing !== 'untouched', () => `${who} got ${nameOf(ref)}, which is not for it`);
    const may = waiting.maybe.has(true) || mayRoute(waiting.event);
    hold(1, may, () => `${nameOf(ref)} was routed to ${who}, which may not get it`);
    noteRouted(receiver, waiting.event, routing);
    receiver.open.set(ref, { event: waiting.event, attempts: 0, dueMs: 0 });
  }
}

/** What is open is open, and only retention ends something by itself. */
function noteExpiries(receiver: Receiver, dump: RedisDump, { who, keys, nameOf, routing, nowMs }: Comparison): void {
  const members = Object.keys(dump.sorted.get(keys.pending) ?? {});
  const pending = new Set(members.map(member => member.split('\0').at(-1) as string));
  // Its inbox goes with it.
  const mayGo = receiver.leaving && dump.hashes.get(keys.own)?.inc !== generationOf(receiver.uid);
  for (const [ref, { event }] of receiver.open) {
    if (pending.has(ref) || mayGo) continue;
    const old = routing !== 'untouched' && nowMs - event.acceptedMs > RETENTION_MS;
    hold(13, old, () => `${event.name} is lost from the inbox of ${who}`);
    receiver.open.delete(ref);
    receiver.final.set(ref, 'expired');
  }
  for (const ref of pending) hold(17, receiver.open.has(ref), () => `${nameOf(ref)} is open again for ${who}`);
}

/** Compares an inbox with what is known of it, and takes over what a step of the router may have changed. */
export function compareInbox(receiver: Receiver, dump: RedisDump, comparison: Comparison): void {
  const { who, keys, routing } = comparison;
  noteComings(receiver, dump, comparison);
  noteExpiries(receiver, dump, comparison);
  const own = dump.hashes.get(keys.own);
  if (own === undefined || own.inc !== generationOf(receiver.uid)) return;
  if (routing !== 'untouched') noteShortStays(receiver, own, comparison);
  const ended = [...receiver.final.values()];
  const count = (final: Final) => ended.filter(each => each === final).length;
  const said = ['routed', ...FINALS].map(each => `${own[`n:${each}`] ?? 0} ${each}`).join(', ');
  const known = [`${receiver.routed.size} routed`, ...FINALS.map(each => `${count(each)} ${each}`)].join(', ');
  hold(13, said === known, () => `${who} counts ${said}; it is ${known}`);
}

import { tokensOf } from '../../../src/core/events/tokens.ts';
import { generationOf } from '../../../src/core/ids/ids.ts';
import { refMs, refOfStreamId } from '../../../src/core/ids/refs.ts';
import { replayOf } from '../../../src/redis/inbox-store.ts';
import { bucketOf, type inboxKeys } from '../../../src/redis/keys.ts';
import { deliveryName, FINALS, type Final, type ModelEvent, RETENTION_MS, type Receiver } from './expectation.ts';
import type { RedisDump } from './redis-dump.ts';
import { hold } from './violation.ts';

/** How far a step brought the routing of a queue; held: as far as its account has tokens. */
export type Routing = 'complete' | 'held' | 'broken off' | 'untouched';

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
  /** The event, if a replay that is paid for may bring it now. */
  readonly replayedEvent: (ref: string, replayId: string) => ModelEvent | undefined;
  readonly nowMs: number;
}

type Fields = Readonly<Record<string, string>>;

function noteRouted(receiver: Receiver, event: ModelEvent, routing: Routing): void {
  if (routing === 'broken off') receiver.unsure.set(event.ref, event);
  receiver.undecided.delete(event.ref);
  receiver.routed.set(event.ref, event);
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
    receiver.open.set(ref, { event: waiting.event, replayId: undefined, attempts: 0, dueMs: 0 });
  }
}

/** Names of the open deliveries as the inbox has them. */
function readPending(dump: RedisDump, pending: string): Set<string> {
  const members = Object.keys(dump.sorted.get(pending) ?? {});
  return new Set(
    members.map(member => {
      const [key = '', ref = ''] = member.split('\0');
      return deliveryName(ref, replayOf(key));
    }),
  );
}

/** What comes again was asked for, and paid (invariants 17, 20). */
function noteReplays(
  receiver: Receiver,
  pending: ReadonlySet<string>,
  { who, nameOf, replayedEvent }: Comparison,
): void {
  for (const name of pending) {
    const [ref = '', replayId] = name.split(':');
    if (replayId === undefined || receiver.open.has(name) || receiver.final.has(name)) continue;
    const event = replayedEvent(ref, replayId);
    hold(20, event !== undefined, () => `${nameOf(ref)} comes again to ${who} by ${replayId}, which nobody paid for`);
    receiver.replayed.add(name);
    receiver.open.set(name, { event, replayId, attempts: 0, dueMs: 0 });
  }
}

/** What is open is open, and only retention ends something by itself. */
function noteExpiries(
  receiver: Receiver,
  dump: RedisDump,
  pending: ReadonlySet<string>,
  { who, keys, nameOf, routing, nowMs }: Comparison,
): void {
  // Its inbox goes with it.
  const mayGo = receiver.leaving && dump.hashes.get(keys.own)?.inc !== generationOf(receiver.uid);
  for (const [name, { event }] of receiver.open) {
    if (pending.has(name) || mayGo) continue;
    const old = routing !== 'untouched' && nowMs - event.acceptedMs > RETENTION_MS;
    hold(13, old, () => `${event.name} is lost from the inbox of ${who}`);
    receiver.open.delete(name);
    receiver.final.set(name, 'expired');
  }
  for (const name of pending) {
    hold(17, receiver.open.has(name), () => `${nameOf(name.slice(0, 15))} is open again for ${who}`);
  }
}

/** How a delivery ended is written down, and stays: no replay touches what became of the event before (invariant 17). */
function checkRecords(receiver: Receiver, dump: RedisDump, { who, keys, nameOf }: Comparison): void {
  const wordOf = (name: string) => {
    const records = dump.hashes.get(keys.records(bucketOf(refMs(name.slice(0, 15)))));
    return records?.[name]?.split(' ')[0];
  };
  for (const [name, final] of receiver.final) {
    const word = wordOf(name);
    // Which of the old ones came and ended in one step is a guess.
    const right = word === final || (word === undefined && final === 'expired');
    hold(17, right, () => `${nameOf(name.slice(0, 15))} was ${final} for ${who}, and its record says ${word}`);
  }
  for (const name of receiver.open.keys()) {
    hold(17, wordOf(name) === undefined, () => `${nameOf(name.slice(0, 15))} is open for ${who}, and has a record`);
  }
}

/** Compares an inbox with what is known of it, and takes over what a step of the router may have changed. */
export function compareInbox(receiver: Receiver, dump: RedisDump, comparison: Comparison): void {
  const { who, keys, routing } = comparison;
  const pending = readPending(dump, keys.pending);
  noteComings(receiver, dump, comparison);
  noteReplays(receiver, pending, comparison);
  noteExpiries(receiver, dump, pending, comparison);
  checkRecords(receiver, dump, comparison);
  const own = dump.hashes.get(keys.own);
  if (own === undefined || own.inc !== generationOf(receiver.uid)) return;
  if (routing !== 'untouched') noteShortStays(receiver, own, comparison);
  const ended = [...receiver.final.values()];
  const count = (final: Final) => ended.filter(each => each === final).length;
  const said = ['routed', 'replayed', ...FINALS].map(each => `${own[`n:${each}`] ?? 0} ${each}`).join(', ');
  const come = [`${receiver.routed.size} routed`, `${receiver.replayed.size} replayed`];
  const known = [...come, ...FINALS.map(each => `${count(each)} ${each}`)].join(', ');
  hold(13, said === known, () => `${who} counts ${said}; it is ${known}`);
}

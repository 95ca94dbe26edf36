import { tokensOf } from '../../../src/core/events/tokens.ts';
import { partRefOf } from '../../../src/part/inbox/ref-names.ts';
import type { ReplaySelection } from '../../../src/plane/replay-prices.ts';
import { type ModelEvent, RETENTION_MS, type Receiver } from './expectation.ts';
import type { ModelTenant } from './tenant.ts';

/** The expected responses to a replay according to the rules. There are several if the response cannot be known. */
export interface ExpectedPrice {
  readonly answers: ReadonlySet<string>;
  /** The events that must arrive, and the events that may arrive because older events may have expired. */
  readonly must: ReadonlyMap<string, ModelEvent>;
  readonly may: ReadonlyMap<string, ModelEvent>;
}

/** The tokens of an account that can be spent now. Infinite if the plan only counts. */
export type Left = number;

export function priceOf({ body }: ModelEvent): number {
  return tokensOf(Buffer.byteLength(body));
}

export function sumOf(events: Iterable<ModelEvent>): number {
  let tokens = 0;
  for (const event of events) tokens += priceOf(event);
  return tokens;
}

const refused = (...answers: string[]): ExpectedPrice => ({
  answers: new Set(answers),
  must: new Map(),
  may: new Map(),
});

/** Only used for a tenant whose applied state is certain. */
export function expectReplay(
  tenant: ModelTenant,
  receiver: Receiver,
  selection: ReplaySelection,
  left: Left,
  nowMs: number,
): ExpectedPrice {
  const subscription = tenant.defined().subscriptions.get(receiver.uid);
  if (subscription?.route !== 'open') return refused(subscription?.route === 'paused' ? 'PAUSED' : 'GONE');
  const isActive = ({ groupKey }: ModelEvent) => tenant.defined().gates.has(`${receiver.integration}/${groupKey}`);
  // A stream that was recreated does not have any events of the previous stream.
  const isStored = ({ lost, streamUid }: ModelEvent) => !lost && streamUid === subscription.streamUid;
  const isOld = ({ acceptedMs }: ModelEvent) => nowMs - acceptedMs > RETENTION_MS;

  const answers = new Set<string>();
  const may = new Map<string, ModelEvent>();
  if ('ref' in selection) {
    const event = receiver.routed.get(partRefOf(selection.ref) ?? '') as ModelEvent;
    if (receiver.open.has(event.ref)) return refused('OPEN_EVENT');
    if (isOld(event)) answers.add('EXPIRED');
    // The record of a delivered event is removed with it.
    if (isOld(event) && receiver.final.get(event.ref) === 'delivered') answers.add('UNKNOWN');
    if (!isActive(event)) return refused('INACTIVE', ...answers);
    if (!isStored(event)) return refused('EXPIRED', ...answers);
    may.set(event.ref, event);
  } else {
    for (const event of receiver.routed.values()) {
      const inRange = event.acceptedMs >= selection.fromMs && event.acceptedMs < selection.toMs;
      const final = receiver.final.get(event.ref);
      if (!inRange || final === undefined || !selection.states.includes(final)) continue;
      if (isActive(event) && isStored(event)) may.set(event.ref, event);
    }
  }
  const must = new Map([...may].filter(([, event]) => !isOld(event)));
  if (must.size === 0) answers.add('ref' in selection ? 'EXPIRED' : 'NOTHING');
  if (may.size > 0 && sumOf(must.values()) <= left) answers.add('OK');
  if (sumOf(may.values()) > left) answers.add('SHORT');
  return { answers, must, may };
}

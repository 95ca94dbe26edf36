import { generationOf, tenantId } from '../../../src/core/ids/ids.ts';
import type { Completion } from '../../../src/part/claims/exchange.ts';
import { slotOf } from '../../../src/part/keys.ts';
import type { InboxRef } from '../../../src/plane/inbox-ref.ts';
import { payerOf } from './accounts.ts';
import {
  type ControlState,
  controlStateBy,
  differencesOf,
  readControlState,
  type TenantNames,
} from './control-state.ts';
import { type Definition, defineClosed, defineTenant, integrationId, subscriptionId } from './definition.ts';
import { createReceiver, decide, emptyReceiver, type ModelEvent, RETENTION_MS, type Receiver } from './expectation.ts';
import type { Objects } from './objects.ts';
import { priceOf } from './replay-price.ts';
import { compareSlot, readPart } from './slot-comparison.ts';
import { hold } from './violation.ts';
import type { WorldDump } from './world-dump.ts';

export const NAMES = {
  streams: ['orders', 'parcels'],
  packages: ['basic', 'gold'],
  integrations: ['shop', 'bank'],
  /** One of the names is a prefix of the other. */
  groupKeys: ['k', 'k1', 'm'],
} as const;

/** Equal definitions are merged. */
function differing(definitions: readonly Definition[]): Definition[] {
  const parts = ({ streams, integrations, subscriptions, gates, hasWorkspace }: Definition) =>
    JSON.stringify([hasWorkspace, [...streams], [...integrations], [...subscriptions], [...gates].toSorted()]);
  return [...new Map(definitions.map(each => [parts(each), each])).values()];
}

/** Whether a pause has ended in this step for which all Blocks specify SkipToNow. */
function skips(receiver: Receiver, before: Definition, after: Definition): boolean {
  const had = before.subscriptions.get(receiver.uid);
  return had?.route === 'paused' && had.covers === 'skip' && after.subscriptions.get(receiver.uid)?.covers === 'none';
}

/** Additional information required for a check. */
export interface StepFacts {
  readonly replayedEvent: (receiver: Receiver, ref: string, replayId: string) => ModelEvent | undefined;
  /** By slot and name of the delivery. */
  readonly unanswered: (receiver: Receiver) => ReadonlyMap<string, Completion>;
}

/** The state of a tenant expected by the model. */
export type ModelTenant = ReturnType<typeof createModelTenant>;

export function createModelTenant(objects: Objects, name: string, nowMs: () => number) {
  const names: TenantNames = {
    name,
    partner: `${name}-partner`,
    integrations: NAMES.integrations,
    streams: NAMES.streams,
  };
  const id = tenantId(name);
  const payer = payerOf(name);
  const receivers = new Map<string, Receiver>();
  const events: ModelEvent[] = [];
  /** The number of routed tokens by stream uid, including deleted streams. */
  const charged = new Map<string, number>();
  let former = 0;
  /** The possible applied states: one, except after a controller has crashed while applying a change. */
  let possible: Definition[] = [defineTenant(objects, name)];
  /** The streams removed in this step, by uid. */
  const gone = new Map<string, string>();
  /** Streams which are deleted along with undelivered events. */
  const mayLose = new Set<string>();

  const last = () => possible.at(-1) as Definition;
  const nameOf = (ref: string) => events.find(event => event.ref === ref)?.name ?? `unknown ${ref}`;

  function inboxOf({ integration, name: subscription, uid }: Pick<Receiver, 'integration' | 'name' | 'uid'>): InboxRef {
    return {
      integration: integrationId(name, integration),
      sub: subscriptionId(names.partner, subscription),
      inc: generationOf(uid),
    };
  }

  /** Records new receivers, which do not receive earlier events. */
  function meet(defined: Definition): void {
    for (const subscription of defined.subscriptions.values()) {
      if (receivers.has(subscription.uid)) continue;
      const object = objects.get('Subscription', `${names.partner}/${subscription.name}`);
      const { sub, inc } = inboxOf(subscription);
      const receiver = createReceiver(subscription, slotOf(sub, inc), object?.spec.ordering === 'None');
      receivers.set(subscription.uid, receiver);
    }
  }

  /** Records that refused events remain refused, while the disposition is unknown for changes that may be in force. */
  function refuse(isSkipped: (receiver: Receiver) => boolean, isSure: boolean): void {
    for (const receiver of receivers.values()) {
      const skipped = isSkipped(receiver);
      for (const { event, may } of receiver.undecided.values()) {
        const decisions = possible.map(each => decide(event, receiver, each));
        if (skipped || decisions.includes('refuse')) may.add('refuse');
        if ((skipped && isSure) || !decisions.includes('route')) may.delete('route');
      }
    }
  }

  /**
   * Records that the stream and its data no longer exist because all events were delivered before. During a pause, the
   * object may be removed before its part, which is left to the garbage collector.
   */
  function forgetStream(stream: string, uid: string, isLeft = false): void {
    for (const receiver of receivers.values()) {
      if (receiver.stream !== stream) continue;
      for (const { event } of receiver.open.values()) {
        const isOld = nowMs() - event.acceptedMs > RETENTION_MS;
        const mayGo = isLeft || isOld || mayLose.has(uid) || receiver.ended || receiver.leaving;
        hold(13, mayGo, () => `${event.name} went with its stream before ${name}'s ${receiver.name} got it`);
      }
      emptyReceiver(receiver);
    }
    former += charged.get(uid) ?? 0;
    charged.delete(uid);
  }

  function noteGone(before: readonly Definition[]): void {
    for (const [stream, { uid }] of before.flatMap(({ streams }) => [...streams])) {
      if (last().streams.get(stream)?.uid !== uid) gone.set(uid, stream);
    }
  }

  function forgetGone(dump: WorldDump): void {
    for (const [uid, stream] of gone) {
      forgetStream(stream, uid, dump.parts.get(`${id}:${stream}`)?.part.gen === generationOf(uid));
    }
    gone.clear();
  }

  /** Records that a controller crashed while it removed a part. */
  function noteRemovals(dump: WorldDump): void {
    for (const { streams } of possible) {
      for (const [stream, { uid }] of streams) {
        const part = dump.parts.get(`${id}:${stream}`);
        if (part?.part.gen !== generationOf(uid) && last().streams.get(stream)?.uid === uid) forgetStream(stream, uid);
      }
    }
  }

  function comparePart(stream: string, dump: WorldDump, facts: StepFacts): void {
    const uid = last().streams.get(stream)?.uid ?? '';
    const found = dump.parts.get(`${id}:${stream}`);
    if (found?.part.gen !== generationOf(uid)) return;
    const known = new Set(events.filter(event => event.streamUid === uid).map(({ ref }) => ref));
    for (const { ref } of found.log)
      hold(14, known.has(ref), () => `${name}'s ${stream} has ${ref}, which nobody sent`);
    const part = readPart(found);
    for (const receiver of receivers.values()) {
      if (receiver.stream !== stream) continue;
      compareSlot(receiver, part, {
        who: `${name}'s ${receiver.name}`,
        nameOf,
        nowMs: nowMs(),
        replayedEvent: (ref, replayId) => facts.replayedEvent(receiver, ref, replayId),
        unanswered: facts.unanswered(receiver),
        onRouted: event => charged.set(uid, (charged.get(uid) ?? 0) + priceOf(event)),
      });
    }
    // Each event is paid for once per receiving integration (invariant 19).
    const used = Number(found.meta.get('used') ?? 0);
    hold(19, used === (charged.get(uid) ?? 0), () => `${name}'s ${stream} counts ${used} tokens: ${charged.get(uid)}`);
  }

  return {
    name,
    names,
    id,
    payer,
    receivers,
    events,
    inboxOf,
    nameOf,
    mayLose: (uid: string) => mayLose.add(uid),
    /** Returns the tokens charged for its events. */
    spent: () => [...charged.values()].reduce((sum, tokens) => sum + tokens, former),
    /** Returns the known applied state, i.e. the objects when they were last applied. */
    defined: last,
    isCertain: () => possible.length === 1,
    /** Returns the stream with a part of this generation, or '' if no applied state includes it. */
    uidOf(stream: string, generation: string): string {
      const uids = possible.map(({ streams }) => streams.get(stream)?.uid ?? '');
      return uids.find(uid => uid !== '' && generationOf(uid) === generation) ?? '';
    },
    mayBe: (test: (defined: Definition) => boolean) => possible.some(test),

    /** Starts applying the current objects. */
    begin(): void {
      const before = possible;
      if (objects.isPaused(name)) {
        possible = differing([...possible, ...possible.map(each => defineClosed(each, objects, name))]);
      } else {
        possible = [...possible, defineTenant(objects, name)];
        meet(last());
      }
      refuse(receiver => before.some(each => skips(receiver, each, last())), false);
    },
    /** Records that the objects have been applied. */
    commit(): void {
      const before = possible;
      if (objects.isPaused(name)) {
        // In the state before the step, or partly closed, these are closed now.
        possible = differing(possible.map(each => defineClosed(each, objects, name)));
      } else {
        possible = [defineTenant(objects, name)];
        meet(last());
        noteGone(before);
      }
      // The state before this change is the last of the previous states.
      const earlier = before.slice(0, -1);
      const isSkipped = (receiver: Receiver) =>
        earlier.length > 0 && earlier.every(each => skips(receiver, each, last()));
      refuse(isSkipped, possible.length === 1);
      for (const receiver of receivers.values()) {
        receiver.ended ||= !possible.some(({ subscriptions }) => subscriptions.has(receiver.uid));
      }
    },
    /** Records a stored event. */
    accept(event: ModelEvent): void {
      events.push(event);
      for (const receiver of receivers.values()) {
        if (receiver.stream !== event.stream || receiver.ended) continue;
        const may = new Set(possible.map(each => decide(event, receiver, each)));
        receiver.undecided.set(event.ref, { event, may });
      }
    },
    /** Records that Redis has lost all data of a stream, and the account has lost unreported data. */
    loseStream(stream: string, untold: number): void {
      const uid = last().streams.get(stream)?.uid ?? '';
      for (const event of events) if (event.streamUid === uid) event.lost = true;
      for (const receiver of receivers.values()) if (receiver.stream === stream) emptyReceiver(receiver);
      former += (charged.get(uid) ?? 0) - untold;
      charged.delete(uid);
    },
    controlOf: (dump: WorldDump): ControlState => readControlState(dump, id, names, last()),

    /** Compares Redis with everything that is expected. */
    check(dump: WorldDump, facts: StepFacts): void {
      forgetGone(dump);
      if (possible.length > 1) noteRemovals(dump);
      for (const stream of names.streams) comparePart(stream, dump, facts);
      if (possible.length > 1) return;
      const [is, should] = [readControlState(dump, id, names, last()), controlStateBy(last(), names)];
      for (const piece of ['parts', 'rows', 'active'] as const) {
        // Group keys wait for the workspace. If nothing is routed, nothing is opened or closed.
        if (!last().hasWorkspace && piece === 'active') continue;
        const differs = differencesOf(is[piece], should[piece]);
        hold(3, differs === '', () => `${piece} of ${name} and, by the objects: ${differs}`);
      }
    },
  };
}

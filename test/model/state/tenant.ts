import { generationOf, tenantId } from '../../../src/core/ids/ids.ts';
import { inboxKeys, integrationKeys } from '../../../src/redis/keys.ts';
import { payerOf } from './accounts.ts';
import {
  type ControlState,
  decidedBy,
  decidedOf,
  differencesOf,
  readControlState,
  type TenantNames,
} from './control-state.ts';
import { type Definition, defineClosed, defineTenant, integrationId, subscriptionId } from './definition.ts';
import { createReceiver, type Decision, decide, type ModelEvent, type Receiver, type Since } from './expectation.ts';
import { compareInbox, type Routing } from './inbox-comparison.ts';
import type { Objects } from './objects.ts';
import type { RedisDump } from './redis-dump.ts';
import { createTimes } from './times.ts';
import { hold } from './violation.ts';

export const NAMES = {
  streams: ['orders', 'parcels'],
  packages: ['basic', 'gold'],
  integrations: ['shop', 'bank'],
  /** One is the beginning of another. */
  groupKeys: ['k', 'k1', 'm'],
} as const;

/** Definitions that say the same are one. */
function differing(definitions: readonly Definition[]): Definition[] {
  const parts = ({ streams, integrations, subscriptions, gates, hasWorkspace }: Definition) =>
    JSON.stringify([hasWorkspace, [...streams], [...integrations], [...subscriptions], [...gates].toSorted()]);
  return [...new Map(definitions.map(each => [parts(each), each])).values()];
}

/** What the model expects of one tenant. */
export type ModelTenant = ReturnType<typeof createModelTenant>;

export function createModelTenant(objects: Objects, name: string) {
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
  /** By stream uid: events that the main pass went by for certain, and those it may have gone by. */
  const passed = new Map<string, { surely: number; maybe: number }>();
  /** What may be applied: one, except after a controller died at work. */
  let possible: Definition[] = [defineTenant(objects, name)];
  const times = createTimes(names);

  const ofStream = (uid: string) => events.filter(event => event.streamUid === uid);
  const last = () => possible.at(-1) as Definition;

  function sinceOf(dump: RedisDump, receiver: Receiver, groupKey: string): Since {
    const i = integrationKeys(integrationId(name, receiver.integration));
    const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
    const accepted = number(dump.hashes.get(i.meta)?.since);
    const own = dump.hashes.get(i.sub(subscriptionId(names.partner, receiver.name)));
    const admitted = number(own?.since);
    return {
      activationMs: number(dump.hashes.get(i.act)?.[groupKey]),
      floorMs: accepted === undefined || admitted === undefined ? undefined : Math.max(accepted, admitted),
      skipToMs: number(own?.skipTo) ?? 0,
    };
  }

  function decisions(event: ModelEvent, receiver: Receiver, dump: RedisDump, nowMs: number): Set<Decision> {
    const all = new Set<Decision>();
    const known = sinceOf(dump, receiver, event.groupKey);
    for (const each of possible) for (const one of decide(event, receiver, each, known, nowMs)) all.add(one);
    // While a controller's work is half done, an open way may be half open: closed then.
    if (possible.length > 1 && all.has('route')) all.add('refuse').add('hold');
    return all;
  }

  function inboxOf(receiver: Receiver) {
    return {
      integration: integrationId(name, receiver.integration),
      sub: subscriptionId(names.partner, receiver.name),
      inc: generationOf(receiver.uid),
    };
  }

  function keysOf(receiver: Receiver) {
    const { integration, sub, inc } = inboxOf(receiver);
    return { ...inboxKeys(integration, sub, inc), own: integrationKeys(integration).sub(sub) };
  }

  /** Notes new and deleted receivers. */
  function meet(defined: Definition): void {
    for (const subscription of defined.subscriptions.values()) {
      if (receivers.has(subscription.uid)) continue;
      const object = objects.get('Subscription', `${names.partner}/${subscription.name}`);
      const receiver = createReceiver(subscription, object?.spec.ordering === 'None');
      const queue = ofStream(subscription.streamUid);
      const { surely, maybe } = passed.get(subscription.streamUid) ?? { surely: 0, maybe: 0 };
      for (const [at, event] of queue.entries()) {
        if (at >= surely) receiver.undecided.set(event.ref, { event, maybe: new Set(at < maybe ? [false] : []) });
      }
      receivers.set(subscription.uid, receiver);
    }
  }

  const nameOf = (ref: string) => events.find(event => event.ref === ref)?.name ?? `unknown ${ref}`;

  /** After the whole queue was gone through: what must have come has come, and what was refused never comes. */
  function closeQueue(stream: string, dump: RedisDump, nowMs: number): void {
    const uid = last().streams.get(stream)?.uid ?? '';
    passed.set(uid, { surely: ofStream(uid).length, maybe: ofStream(uid).length });
    for (const receiver of receivers.values()) {
      if (receiver.stream !== stream) continue;
      // Of one that is held, the position may stay where it was.
      if (!possible.some(each => each.subscriptions.get(receiver.uid)?.route === 'paused')) receiver.unsure.clear();
      for (const [ref, { event, maybe }] of receiver.undecided) {
        const may = decisions(event, receiver, dump, nowMs);
        if (may.has('hold')) {
          if (may.has('refuse')) maybe.add(false);
          continue;
        }
        const refused = may.has('refuse') || maybe.has(false);
        hold(8, refused, () => `${event.name} was not routed to ${name}'s ${receiver.name}, which may get it`);
        receiver.undecided.delete(ref);
      }
    }
  }

  /** A router that died may have decided anything that it could have decided. */
  function breakOff(stream: string, dump: RedisDump, nowMs: number): void {
    const uid = last().streams.get(stream)?.uid ?? '';
    passed.set(uid, { surely: passed.get(uid)?.surely ?? 0, maybe: ofStream(uid).length });
    for (const receiver of receivers.values()) {
      if (receiver.stream !== stream) continue;
      for (const { event, maybe } of receiver.undecided.values()) {
        for (const decision of decisions(event, receiver, dump, nowMs)) {
          if (decision !== 'hold') maybe.add(decision === 'route');
        }
      }
    }
  }

  /** A router that had no tokens for all of it: what it went by is decided, the rest waits as it is. */
  function holdQueue(stream: string, dump: RedisDump, nowMs: number): void {
    const uid = last().streams.get(stream)?.uid ?? '';
    passed.set(uid, { surely: passed.get(uid)?.surely ?? 0, maybe: ofStream(uid).length });
    for (const receiver of receivers.values()) {
      if (receiver.stream !== stream) continue;
      for (const { event, maybe } of receiver.undecided.values()) {
        if (decisions(event, receiver, dump, nowMs).has('refuse')) maybe.add(false);
      }
    }
  }

  /** The ledgers count what was routed, each event once for each integration (invariant 19). */
  function checkLedgers(dump: RedisDump): void {
    for (const integration of names.integrations) {
      const charged = Number(dump.hashes.get(integrationKeys(integrationId(name, integration)).ledger)?.[payer] ?? 0);
      let tokens = 0;
      for (const receiver of receivers.values()) if (receiver.integration === integration) tokens += receiver.tokens;
      hold(19, charged === tokens, () => `${name} was charged ${charged} tokens for ${integration}; it is ${tokens}`);
    }
  }

  /** What a stream took along when it went. */
  function forgetStream(uid: string): void {
    for (const receiver of receivers.values()) {
      for (const [ref, { event }] of receiver.undecided) if (event.streamUid === uid) receiver.undecided.delete(ref);
    }
  }

  return {
    name,
    names,
    id,
    payer,
    receivers,
    events,
    inboxOf,
    keysOf,
    /** What is applied as far as it is known: the objects as they were last applied. */
    defined: last,
    isCertain: () => possible.length === 1,
    /** The stream that a queue of this generation is of; '' when none that may be applied is. */
    uidOf(stream: string, generation: string): string {
      const uids = possible.map(({ streams }) => streams.get(stream)?.uid ?? '');
      return uids.find(uid => uid !== '' && generationOf(uid) === generation) ?? '';
    },
    mayBe: (test: (defined: Definition) => boolean) => possible.some(test),

    /** The objects as they are now begin to be applied. */
    begin(): void {
      if (objects.isPaused(name)) {
        possible = differing([...possible, ...possible.map(each => defineClosed(each, objects, name))]);
        return;
      }
      possible = [...possible, defineTenant(objects, name)];
      meet(last());
    },
    /** They are applied. */
    commit(): void {
      if (objects.isPaused(name)) {
        // As it stood before the step, or half closed: closed now.
        possible = differing(possible.map(each => defineClosed(each, objects, name)));
        for (const receiver of receivers.values()) {
          if (!possible.some(({ subscriptions }) => subscriptions.has(receiver.uid))) receiver.ended = true;
        }
        return;
      }
      const before = possible;
      const [first] = before;
      possible = [defineTenant(objects, name)];
      meet(last());
      times.noteChange(first, last());
      const living = new Set([...last().streams.values()].map(({ uid }) => uid));
      for (const { streams } of before) for (const { uid } of streams.values()) if (!living.has(uid)) forgetStream(uid);
      for (const receiver of receivers.values()) if (!last().subscriptions.has(receiver.uid)) receiver.ended = true;
    },
    /** An event was acknowledged. */
    accept(event: ModelEvent): void {
      events.push(event);
      for (const receiver of receivers.values()) {
        if (receiver.stream === event.stream && !receiver.ended) {
          receiver.undecided.set(event.ref, { event, maybe: new Set() });
        }
      }
    },
    /** The queue of a stream that is being deleted goes at once, with what is not routed yet. */
    mayLose(stream: string): void {
      for (const receiver of receivers.values()) {
        if (receiver.stream === stream) for (const { maybe } of receiver.undecided.values()) maybe.add(false);
      }
    },
    /** Redis has lost a queue: what lay there, routed or not, is gone; the inboxes still have their references. */
    loseQueue(stream: string): void {
      const uid = last().streams.get(stream)?.uid ?? '';
      for (const event of ofStream(uid)) event.lost = true;
      forgetStream(uid);
    },
    /** Redis has lost an integration's slot: its inboxes, ledger and times. */
    loseIntegration(integration: string): void {
      for (const receiver of receivers.values()) {
        if (receiver.integration !== integration) continue;
        receiver.routed.clear();
        receiver.replayed.clear();
        for (const [ref, event] of receiver.unsure) receiver.undecided.set(ref, { event, maybe: new Set([false]) });
        receiver.open.clear();
        receiver.final.clear();
        receiver.tokens = 0;
      }
      times.forget(integration, receivers.values());
    },
    controlOf: (dump: RedisDump): ControlState => readControlState(dump, names, last()),

    /** Compares Redis with everything that is expected, after a step that routed the given streams. */
    check(
      dump: RedisDump,
      routing: ReadonlyMap<string, Routing>,
      nowMs: number,
      replayedEvent: (receiver: Receiver, ref: string, replayId: string) => ModelEvent | undefined,
    ): void {
      const own = new Map([...receivers.values()].map(receiver => [receiver, keysOf(receiver).own]));
      times.watch(dump, own, possible.length === 1, nowMs);
      for (const receiver of receivers.values()) {
        compareInbox(receiver, dump, {
          who: `${name}'s ${receiver.name}`,
          keys: keysOf(receiver),
          nameOf,
          routing: routing.get(receiver.stream) ?? 'untouched',
          replayedEvent: (ref, replayId) => replayedEvent(receiver, ref, replayId),
          mayRoute: event => decisions(event, receiver, dump, nowMs).has('route'),
          nowMs,
        });
      }
      checkLedgers(dump);
      for (const [stream, how] of routing) {
        if (how === 'complete') closeQueue(stream, dump, nowMs);
        else if (how === 'broken off') breakOff(stream, dump, nowMs);
        else if (how === 'held') holdQueue(stream, dump, nowMs);
      }
      if (possible.length > 1) return;
      const [is, should] = [decidedOf(readControlState(dump, names, last())), decidedBy(last(), names)];
      for (const part of Object.keys(should) as (keyof typeof should)[]) {
        // Group keys wait for the workspace: where nothing is routed, nothing is opened or closed.
        if (!last().hasWorkspace && (part === 'activations' || part === 'gates')) continue;
        const differs = differencesOf(is[part], should[part]);
        hold(3, differs === '', () => `${part} of ${name} and, by the objects: ${differs}`);
      }
    },
  };
}

import { createReplays, type ReplayAnswer, type Replays } from '../../src/accounts/replays.ts';
import { createHintIndex } from '../../src/hints/hints.ts';
import { createFindSlot, type FindStream } from '../../src/part/inbox/find-part.ts';
import { inboxRefOf, partRefOf } from '../../src/part/inbox/ref-names.ts';
import { createPartInboxOperations } from '../../src/part/owner/operations.ts';
import { createPartReplayInboxes } from '../../src/part/owner/replays.ts';
import { createTokens } from '../../src/part/tokens/tokens.ts';
import type { ReplayableState, ReplaySelection } from '../../src/plane/replay-prices.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { hintPartition } from '../../src/redis/keys.ts';
import { noteFinish } from './checks/deliveries.ts';
import type { ReplayBook } from './checks/replay-book.ts';
import { createProcess, type Death, type Process } from './processes/process.ts';
import { ACCOUNTS, accountId, payerOf } from './state/accounts.ts';
import type { Receiver } from './state/expectation.ts';
import { expectReplay } from './state/replay-price.ts';
import type { ModelTenant } from './state/tenant.ts';
import { hold } from './state/violation.ts';

export interface PartnerDeps {
  readonly redis: RedisClient;
  readonly nowMs: () => number;
  readonly tenantOf: (name: string) => ModelTenant;
  /** Returns an inbox's stream. */
  readonly findStream: FindStream;
  readonly say: (text: string) => void;
  readonly book: ReplayBook;
}

/** Events that a partner wants to receive again. */
export interface Wish {
  /**
   * one: mostly an event that has ended; range: events that have ended recently; again: an earlier replay; taken: other
   * events with the id of an earlier replay.
   */
  readonly kind: 'one' | 'range' | 'again' | 'taken';
  readonly which: number;
  readonly spanMs: number;
  readonly states: readonly ReplayableState[];
}

/** This is small, so that a process may crash between two chunks. */
const CHUNK_EVENTS = 2;
const SWEEP_LEASE_MS = 30_000;

interface Replayer {
  readonly process: Process;
  readonly work: Replays;
}

function startReplays({ redis, nowMs, findStream }: PartnerDeps): Replayer {
  const process = createProcess(redis);
  const { recallAll } = createTokens(process.redis);
  const work = createReplays({
    redis: process.redis,
    nowMs,
    inboxes: createPartReplayInboxes(process.redis, createFindSlot(process.redis, findStream)),
    lowerAccounts: createHintIndex(process.redis, 'a').lower,
    chunkEvents: CHUNK_EVENTS,
    reclaimTokens: account =>
      recallAll(account, nowMs()).then(
        () => true,
        () => false,
      ),
  });
  return { process, work };
}

const inboxesOf = (tenant: ModelTenant) =>
  [...tenant.receivers.values()].filter(({ ended, leaving, routed }) => !ended && !leaving && routed.size > 0);

/** Returns the requested events and the id (a new id if there is none), or undefined if there are no events. */
function choose({ book, nowMs }: PartnerDeps, tenant: ModelTenant, { kind, which, spanMs, states }: Wish) {
  const known = book.chargedTo(tenant.names.partner).filter(({ receiver }) => !receiver.leaving);
  const before = known[which % known.length];
  if (kind === 'again') return before;
  const all = inboxesOf(tenant).flatMap(receiver => [...receiver.routed.keys()].map(ref => ({ receiver, ref })));
  // Sometimes, this includes an event that is open or must not be delivered.
  const good = all.filter(({ receiver, ref }) => {
    return (
      which % 7 === 0 || expectReplay(tenant, receiver, { ref: inboxRefOf(ref) }, Infinity, nowMs()).answers.has('OK')
    );
  });
  const chosen = good[which % good.length];
  if (chosen === undefined || (kind === 'taken' && before === undefined)) return undefined;
  const { receiver, ref } = chosen;
  const selection: ReplaySelection =
    kind === 'range' ? { fromMs: nowMs() - spanMs, toMs: nowMs() + 1, states } : { ref: inboxRefOf(ref) };
  return { id: kind === 'taken' ? before?.id : undefined, receiver, selection };
}

const titleOf = (receiver: Receiver, selection: ReplaySelection) =>
  'ref' in selection
    ? `${receiver.routed.get(partRefOf(selection.ref) ?? '')?.name ?? 'a lost event'} of ${receiver.name}`
    : `${receiver.name} of ${(selection.toMs - selection.fromMs - 1) / 1_000} s, ${selection.states.join(' or ')}`;

/** Skips or acknowledges a delivery of its inbox that is or was open. */
function createFinish({ redis, findStream, tenantOf, say }: PartnerDeps) {
  const operations = createPartInboxOperations(redis, createFindSlot(redis, findStream));
  return async (name: string, which: number, outcome: 'skipped' | 'delivered'): Promise<void> => {
    const tenant = tenantOf(name);
    if (!tenant.isCertain()) return say(': not while a controller is at work');
    const all = inboxesOf(tenant).flatMap(receiver =>
      [...receiver.routed.keys(), ...receiver.replayed].map(delivery => ({ receiver, delivery })),
    );
    const chosen = all[which % all.length];
    if (chosen === undefined) return say(': nothing is there');
    const { receiver, delivery } = chosen;
    const [partRef = '', replayId] = delivery.split(':');
    const ref = inboxRefOf(partRef);
    const by = replayId === undefined ? '' : `, by ${replayId}`;
    say(`${receiver.open.get(delivery)?.event.name ?? 'an ended event'} of ${receiver.name}${by}`);
    const inbox = tenant.inboxOf(receiver);
    const pushed = tenant.defined().subscriptions.get(receiver.uid)?.pushed === true;
    if (outcome === 'skipped') {
      const answer = await operations.skip(inbox, { ref, replayId });
      return noteFinish(receiver, delivery, outcome, answer);
    }
    const acknowledged = await operations.acknowledge(inbox, [{ ref, replayId }]);
    if (acknowledged.answer === 'OK') return noteFinish(receiver, delivery, outcome, acknowledged.answers[0] ?? '');
    hold(17, acknowledged.answer === 'PUSHED' && pushed, () => `${receiver.name} answers ${acknowledged.answer}`);
  };
}

/** Requests a replay from the first tenant that has events. */
function createReplay(deps: PartnerDeps) {
  const { tenantOf, say, book } = deps;
  let facade: Replayer | undefined;
  let asked = 0;
  return async (names: readonly string[], wish: Wish, death: Death | undefined): Promise<void> => {
    const tenants = names.map(tenantOf).filter(each => each.isCertain());
    const tenant = tenants.find(each => choose(deps, each, wish) !== undefined);
    const chosen = tenant && choose(deps, tenant, wish);
    if (tenant === undefined || chosen === undefined) return say(': there is nothing');
    const { receiver, selection } = chosen;
    const id = chosen.id ?? `r${++asked}`;
    say(`${tenant.name}'s ${titleOf(receiver, selection)} as ${id}`);
    const { replay, answers } = book.ask(id, tenant, receiver, selection);
    const { process, work } = (facade ??= startReplays(deps));
    const reported: ReplayAnswer[] = [];
    const account = payerOf(tenant.names.partner);
    const done = await process.live(async () => {
      reported.push(await work.start(account, id, tenant.inboxOf(receiver), selection));
    }, death);
    if (!done) {
      facade = undefined;
      return say('— the facade died');
    }
    const [answer] = reported as [ReplayAnswer];
    say(`: ${answer.answer}${answer.answer === 'OK' ? `, ${answer.events} for ${answer.tokens} tokens` : ''}`);
    hold(20, answers.has(answer.answer), () => `${id} is ${answer.answer}; it is ${[...answers].join(' or ')}`);
    book.tell(replay, answer);
  };
}

/** Completes abandoned replays when they are due. */
function createSweep(deps: PartnerDeps) {
  const { nowMs, say } = deps;
  let sweeper: Replayer | undefined;
  let sweeps = 0;
  return async (death?: Death): Promise<void> => {
    sweeper ??= startReplays(deps);
    const { process, work } = sweeper;
    const hints = createHintIndex(process.redis, 'a');
    const done = await process.live(async () => {
      for (const name of ACCOUNTS) {
        const partition = hintPartition(accountId(name));
        const token = `sweep${sweeps++}`;
        const { members } = await hints.pick(partition, nowMs(), 100, SWEEP_LEASE_MS, token);
        for (const account of members) await hints.settle(partition, account, token, await work.sweep(account));
      }
    }, death);
    if (done) return;
    sweeper = undefined;
    say('— the dispatcher died');
  };
}

/** Changes the inboxes of an integration, and completes unfinished changes. */
export function createPartner(deps: PartnerDeps) {
  return { finish: createFinish(deps), replay: createReplay(deps), sweep: createSweep(deps) };
}

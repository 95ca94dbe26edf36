import type { ReplayAnswer } from '../../../src/accounts/replays.ts';
import { partRefOf } from '../../../src/part/inbox/ref-names.ts';
import { inboxMember } from '../../../src/plane/inbox-ref.ts';
import type { ReplaySelection } from '../../../src/plane/replay-prices.ts';
import { accountKeys } from '../../../src/redis/keys.ts';
import { ACCOUNTS, accountId, payerOf } from '../state/accounts.ts';
import { deliveryName, type ModelEvent, RETENTION_MS, type Receiver } from '../state/expectation.ts';
import { type ExpectedPrice, expectReplay, sumOf } from '../state/replay-price.ts';
import type { ModelTenant } from '../state/tenant.ts';
import { hold } from '../state/violation.ts';
import type { WorldDump } from '../state/world-dump.ts';

/** A replay that was requested using its id. */
export interface ModelReplay {
  readonly id: string;
  readonly account: string;
  readonly tenant: ModelTenant;
  readonly receiver: Receiver;
  readonly selection: ReplaySelection;
  /** Whether the events are as of the time of the request, which has not been charged before. */
  expected: ExpectedPrice;
  /** The charged tokens. Undefined if nothing was charged, as far as is known. */
  charged: { readonly tokens: number; readonly events: number } | undefined;
  /** The number of refunded tokens at the end, or undefined if it has not ended yet. */
  refunded: number | undefined;
}

/** All requested replays, and the corresponding account data (invariant 20). */
export type ReplayBook = ReturnType<typeof createReplayBook>;

type Fields = Readonly<Record<string, string>>;

/** The refs of chunks that have not been added yet, as stored in an intent: 15 characters, plus two for the tokens. */
function refsOf(fields: Fields): Set<string> {
  const chunks = Object.entries(fields).filter(([field]) => /^c\d+$/.test(field));
  return new Set(
    chunks.flatMap(([, text]) => (text.match(/.{17}/g) ?? []).map(each => partRefOf(each.slice(0, 15)) ?? '')),
  );
}

export function createReplayBook(nowMs: () => number, leftForReplays: (account: string) => number) {
  const replays = new Map<string, ModelReplay>();
  /** The response returned to a caller in this step. */
  let returned: { readonly replay: ModelReplay; readonly answer: ReplayAnswer } | undefined;

  const keyOf = (account: string, name: string) => `${account}/${name}`;
  /** The name of a replay within its account. */
  const nameOf = (tenant: ModelTenant, receiver: Receiver, id: string) =>
    `${tenant.inboxOf(receiver).integration}/${id}`;

  function takenBy({ id, receiver, expected }: ModelReplay): ModelEvent[] {
    return [...expected.may.values()].filter(({ ref }) => receiver.replayed.has(deliveryName(ref, id)));
  }

  /** Whether an event may not arrive even though it was paid for, in which case its tokens are refunded. */
  function mayMiss({ tenant, receiver }: ModelReplay, { ref, acceptedMs }: ModelEvent): boolean {
    const closes = tenant.mayBe(
      ({ subscriptions }) => (subscriptions.get(receiver.uid)?.route ?? 'closed') === 'closed',
    );
    // Its inbox may be lost and recreated.
    const lost = !receiver.routed.has(ref) || !tenant.isCertain();
    return closes || lost || receiver.open.has(ref) || nowMs() - acceptedMs > RETENTION_MS;
  }

  /** Records a charge in this step, for both the events that may arrive and the events that must arrive. */
  function noteCharge(replay: ModelReplay, fields: Fields): void {
    const { id, expected } = replay;
    const [tokens, events] = [Number(fields.tokens), Number(fields.events)];
    const refs = fields.state === 'open' ? refsOf(fields) : new Set(takenBy(replay).map(({ ref }) => ref));
    const missing = [...expected.must.values()].find(({ ref }) => !refs.has(ref));
    hold(20, expected.answers.has('OK'), () => `${id} was charged, and may not be: ${[...expected.answers].join()}`);
    hold(20, missing === undefined, () => `${id} was charged, and leaves out ${missing?.name}`);
    const right = [...refs].every(ref => expected.may.has(ref)) && (fields.state !== 'open' || events === refs.size);
    hold(20, right, () => `${id} was charged for ${events} events; it is ${[...refs].length}`);
    const [least, most] = [sumOf(expected.must.values()), sumOf(expected.may.values())];
    hold(20, tokens >= least && tokens <= most, () => `${id} was charged ${tokens} tokens; it is ${least} to ${most}`);
    replay.charged = { tokens, events };
  }

  /** Whether all events have arrived, or their tokens have been refunded. */
  function noteEnd(replay: ModelReplay, fields: Fields): void {
    const { id, expected, charged = { tokens: 0 } } = replay;
    const taken = takenBy(replay);
    const refunded = charged.tokens - sumOf(taken);
    const reported = `${fields.taken} events, ${fields.refunded} tokens back`;
    const known = `${taken.length} events, ${refunded} tokens back`;
    hold(20, reported === known, () => `${id} ended with ${reported}; it is ${known}`);
    const missed = [...expected.must.values()].find(event => !taken.includes(event) && !mayMiss(replay, event));
    hold(20, missed === undefined, () => `${id} was paid for, and does not bring ${missed?.name}`);
    replay.refunded = refunded;
  }

  function checkReplay(account: string, name: string, fields: Fields, isListed: boolean): void {
    const replay = replays.get(keyOf(account, name));
    hold(20, replay !== undefined, () => `${account} has ${name}, which nobody asked for`);
    const { id } = replay;
    const right =
      fields.inbox === inboxMember(replay.tenant.inboxOf(replay.receiver)) &&
      fields.selection === JSON.stringify(replay.selection);
    hold(20, right, () => `${id} is of ${fields.inbox} ${fields.selection}`);
    if (replay.charged === undefined) noteCharge(replay, fields);
    const open = fields.state === 'open';
    hold(20, open === isListed, () => `${id} is ${fields.state}, and ${isListed ? '' : 'not '}looked at`);
    if (replay.refunded !== undefined) hold(20, !open, () => `${id} is open again`);
    else if (!open) noteEnd(replay, fields);
  }

  function checkAccount(account: string, dump: WorldDump): void {
    const a = accountKeys(account);
    const listed = dump.sorted.get(a.replays) ?? {};
    const prefix = a.replay('');
    const kept = new Set<string>();
    for (const [key, fields] of dump.hashes) {
      if (!key.startsWith(prefix)) continue;
      const name = key.slice(prefix.length);
      kept.add(name);
      checkReplay(account, name, fields, listed[name] !== undefined);
    }
    let used = spentBy(account);
    const { term: _, ...totals } = dump.hashes.get(a.seen) ?? {};
    for (const total of Object.values(totals)) used += Number(total);
    for (const { id, account: payer, tenant, receiver, charged } of replays.values()) {
      const isKept = kept.has(nameOf(tenant, receiver, id));
      hold(20, payer !== account || charged === undefined || isKept, () => `${id} was charged, and is forgotten`);
    }
    const meta = dump.hashes.get(a.meta) ?? {};
    hold(20, Number(meta.used ?? 0) === used, () => `${account} has used ${meta.used} tokens; it is ${used}`);
  }

  /** The tokens charged to an account for replays. */
  function spentBy(account: string): number {
    const own = [...replays.values()].filter(each => each.account === account);
    return own.reduce(
      (sum, { charged, refunded = 0 }) => sum + (charged === undefined ? 0 : charged.tokens - refunded),
      0,
    );
  }

  /** Checks that the response matches the current state. */
  function checkReturned(): void {
    if (returned === undefined) return;
    const { replay, answer } = returned;
    returned = undefined;
    if (answer.answer !== 'OK') return;
    const { charged, refunded } = replay;
    const is = `${charged?.events} events, ${charged?.tokens} tokens, ${refunded ?? 0} back, ${refunded !== undefined}`;
    const reported = `${answer.events} events, ${answer.tokens} tokens, ${answer.refunded} back, ${answer.complete}`;
    hold(20, is === reported, () => `${replay.id} is reported as ${reported}; it is ${is}`);
  }

  return {
    spentBy,
    /** Returns the charged replays of a tenant's partner. */
    chargedTo: (workspace: string): ModelReplay[] =>
      [...replays.values()].filter(({ account, charged }) => account === payerOf(workspace) && charged !== undefined),

    /** Records that a caller is about to request a replay. The response must be one of `answers`. */
    ask(
      id: string,
      tenant: ModelTenant,
      receiver: Receiver,
      selection: ReplaySelection,
    ): { readonly replay: ModelReplay; readonly answers: ReadonlySet<string> } {
      const account = payerOf(tenant.names.partner);
      const key = keyOf(account, nameOf(tenant, receiver, id));
      const known = replays.get(key);
      if (known?.charged !== undefined) {
        const same = known.receiver === receiver && JSON.stringify(known.selection) === JSON.stringify(selection);
        return { replay: known, answers: new Set([same ? 'OK' : 'CONFLICT']) };
      }
      const expected = expectReplay(tenant, receiver, selection, leftForReplays(account), nowMs());
      const replay = { id, account, tenant, receiver, selection, expected, charged: undefined, refunded: undefined };
      replays.set(key, replay);
      return { replay, answers: expected.answers };
    },
    tell: (replay: ModelReplay, answer: ReplayAnswer): void => {
      returned = { replay, answer };
    },
    /** Returns the event if a replay with this id may deliver it to the receiver now. */
    eventOf(tenant: ModelTenant, receiver: Receiver, ref: string, id: string): ModelEvent | undefined {
      const replay = replays.get(keyOf(payerOf(tenant.names.partner), nameOf(tenant, receiver, id)));
      if (replay?.receiver !== receiver || replay.refunded !== undefined) return undefined;
      const takes = tenant.mayBe(
        ({ subscriptions }) => (subscriptions.get(receiver.uid)?.route ?? 'closed') !== 'closed',
      );
      return takes ? replay.expected.may.get(ref) : undefined;
    },
    /** Returns the number of ended replays. */
    ended: () => [...replays.values()].filter(({ refunded }) => refunded !== undefined).length,
    check(dump: WorldDump): void {
      for (const name of ACCOUNTS) checkAccount(accountId(name), dump);
      checkReturned();
    },
    /** Checks that all paid events have arrived or were refunded if there is no work left. */
    checkSettled(): void {
      for (const { id, charged, refunded } of replays.values()) {
        hold(25, charged === undefined || refunded !== undefined, () => `${id} was paid for, and never ends`);
      }
    },
  };
}

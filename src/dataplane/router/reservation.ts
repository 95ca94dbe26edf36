import { coveredBy } from '../../core/events/tokens.ts';
import { type BatchItem, type BatchPlan, costsOf } from '../../core/routing/batch.ts';
import type { InboxRef } from '../../redis/inbox-store.ts';
import type { LedgerStore, LedgerTotal, Survey } from '../../redis/ledger-store.ts';
import type { OwnedQueue, QueueEntry } from '../../redis/queue-store.ts';
import { FencedError } from './fenced-error.ts';
import { queueMember } from './queue-member.ts';

export interface ReservationDeps {
  readonly ledger: Pick<LedgerStore, 'reserve' | 'fold' | 'survey'>;
  readonly nowMs: () => number;
  readonly alarm: (slot: string) => void;
}

/** Why nothing of a batch may be routed: no tokens; others hold them for the moment; or the account is not known. */
export type Hold = 'SHORT' | 'BUSY' | 'CLOSED';

export interface Reservation {
  /**
   * Whether nothing is set aside for the queue any more once this batch is folded. Not where it costs nothing and nobody
   * looked at what an earlier batch was charged, or somebody could not be looked at.
   */
  readonly settles: boolean;
  /** How many of the entries, from the first on, are wholly covered. */
  readonly covered: number;
  /** What is known of inboxes that take nothing now: they need not be asked. */
  readonly refusals: ReadonlyMap<string, Exclude<Survey['answer'], 'OK'> | 'UNREACHABLE'>;
}

/** A batch as it is offered, before tokens decide how much of it may go. */
export interface Offered {
  readonly entries: readonly QueueEntry[];
  readonly offers: BatchPlan['offers'];
  /** Of every subscription of the queue: any of them may have been charged for a batch that was left. */
  readonly inboxes: () => ReadonlyMap<string, InboxRef>;
}

/**
 * Reserves the tokens of a batch for an account that enforces them. Asked at first with what the batch costs at most; if
 * that is not enough, or an earlier batch of the queue was left without being folded, every inbox is looked at: what it
 * has already, and what it would refuse, costs nothing, and what was charged and not counted is counted.
 */
export async function reserveBatch(
  deps: ReservationDeps,
  queue: OwnedQueue,
  payer: string,
  batch: Offered,
): Promise<Reservation | Hold> {
  const { entries } = batch;
  let { offers } = batch;
  let refusals: Reservation['refusals'] = new Map();
  for (let closely = false; ; closely = true) {
    const costs = costsOf(entries, offers);
    const amount = costs.reduce((sum, cost) => sum + cost, 0);
    const settles = unreachableOf(refusals).length === 0;
    if (amount === 0) return { settles: closely && settles, covered: entries.length, refusals };
    const free = costs.findIndex(cost => cost > 0);
    const need = costs[free] as number;
    const member = queueMember(queue.tenant, queue.queue);
    // Whoever did not answer may have been charged, and is looked at the next time.
    const integrations = [...new Set([...offers.keys(), ...unreachableOf(refusals)])];
    const asked = { queue: member, epoch: queue.epoch, need, amount, integrations, closely };
    const reserved = await deps.ledger.reserve(payer, deps.nowMs(), asked);
    switch (reserved.answer) {
      case 'OK':
        if (reserved.cleared) deps.alarm(`a:${payer}`);
        return { settles, covered: coveredBy(costs, reserved.tokens), refusals };
      case 'FENCED':
        throw new FencedError(`queue ${queue.queue} is owned by a newer router`);
      case 'LOOK':
        ({ offers, refusals } = await lookClosely(deps, queue, payer, batch, reserved.charged));
        break;
      case 'BUSY':
        return free > 0 ? { settles: false, covered: free, refusals } : 'BUSY';
      default:
        deps.alarm(`a:${payer}`);
        // What goes to nobody need not wait.
        return free > 0 ? { settles: false, covered: free, refusals } : reserved.answer;
    }
  }
}

function unreachableOf(refusals: Reservation['refusals']): string[] {
  return [...refusals].flatMap(([integration, refusal]) => (refusal === 'UNREACHABLE' ? [integration] : []));
}

/**
 * What a batch costs exactly, and who refuses it; folds what the queue's inboxes were charged at any time.
 *
 * @param charged integrations that an earlier batch may have been charged for: their subscriptions may be gone by now
 */
async function lookClosely(
  deps: ReservationDeps,
  queue: OwnedQueue,
  payer: string,
  { offers, inboxes }: Offered,
  charged: readonly string[],
) {
  const present = inboxes();
  const gone = charged.filter(integration => !present.has(integration));
  const refusals = new Map<string, Exclude<Survey['answer'], 'OK'> | 'UNREACHABLE'>();
  const open = new Map<string, readonly BatchItem[]>();
  const totals = new Map<string, LedgerTotal>();
  await Promise.all(
    [...present, ...gone.map(each => [each, inboxOfNobody(each)] as const)].map(async ([integration, inbox]) => {
      let survey: Survey;
      try {
        survey = await deps.ledger.survey(inbox, queue.gen, payer);
      } catch {
        refusals.set(integration, 'UNREACHABLE');
        return;
      }
      const { answer, ledger, last } = survey;
      if (ledger !== undefined) totals.set(integration, ledger);
      if (answer !== 'OK') {
        refusals.set(integration, answer);
        return;
      }
      const items = (offers.get(integration) ?? []).filter(({ ref }) => ref > last);
      if (items.length > 0) open.set(integration, items);
    }),
  );
  await deps.ledger.fold(payer, totals);
  return { offers: open, refusals };
}

/** Of an integration without a subscription: its ledger can be read all the same. */
function inboxOfNobody(integration: string): InboxRef {
  return { integration, sub: '', inc: '' };
}

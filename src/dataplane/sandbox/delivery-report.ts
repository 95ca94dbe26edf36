import type { SandboxDelivery } from '../../api/sandbox.ts';
import { planDelivery, type Simulation } from '../../core/delivery/simulation.ts';
import type { EventProgress } from '../../core/events/event-state.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import { parseRow } from '../../part/gate/subscription-row.ts';
import { isDisabled, type SlotView } from '../../part/sandbox/view.ts';
import { type RunDelivery, runJitter, type SentAttempt } from './run-deliveries.ts';

const OPEN: readonly EventProgress['state'][] = ['pending', 'inflight', 'retrying'];

/** The data about a delivery in a run that is needed for its report. */
export interface DeliveryFacts {
  readonly run: string;
  readonly delivery: RunDelivery;
  readonly bytes: number;
  readonly simulation: Simulation;
  readonly progress: EventProgress;
  /** The last attempt. If there was no attempt yet, this is undefined. */
  readonly sent: SentAttempt | undefined;
  /** The subscription in production. If it is not known, this is undefined. */
  readonly production: SlotView | undefined;
}

/** Returns the report for a single delivery. The function has no side effects. */
export function reportDelivery(facts: DeliveryFacts): SandboxDelivery {
  const { run, delivery, simulation, progress, sent } = facts;
  const plan = sent && planDelivery(simulation, sent.retryMs, runJitter(run, delivery));
  return {
    subscriptionPublicId: delivery.sub,
    state: progress.state,
    heldBy: OPEN.includes(progress.state) ? heldBy(facts.production) : null,
    tokens: tokensOf(facts.bytes),
    disablesEndpoint: progress.history.some(({ result }) => result === '410'),
    expected: plan === undefined ? null : { outcome: plan.outcome, attempts: [...plan.attempts] },
    attempts: progress.history.map(({ atMs, result }, i) => ({
      at: new Date(atMs).toISOString(),
      status: result,
      waitedMs: atMs - (progress.history[i - 1]?.atMs ?? atMs),
    })),
    headers: sent === undefined ? null : sent.headers.map(([name, value]) => ({ name, value })),
  };
}

function heldBy(production: SlotView | undefined): SandboxDelivery['heldBy'] {
  const row = parseRow(production?.row ?? '');
  if (row === undefined || production?.hasEndpoint !== true) return 'no_endpoint';
  if (row.send !== 'open') return 'endpoint_held';
  return isDisabled(production.health, row) ? 'endpoint_disabled' : null;
}

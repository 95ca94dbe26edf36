import type { SandboxDelivery } from '../../api/sandbox.ts';
import { planDelivery, type Simulation } from '../../core/delivery/simulation.ts';
import type { EventProgress } from '../../core/events/event-state.ts';
import { tokensOf } from '../../core/events/tokens.ts';
import type { InboxRef } from '../../redis/inbox-store.ts';
import { isDisabled } from '../../redis/sandbox-gate.ts';
import { runJitter, type SentAttempt } from './run-deliveries.ts';

const OPEN: readonly EventProgress['state'][] = ['pending', 'inflight', 'retrying'];

/** Data about a delivery within a run, as needed for the report. */
export interface DeliveryFacts {
  readonly run: string;
  readonly inbox: InboxRef;
  readonly ref: string;
  readonly bytes: number;
  readonly simulation: Simulation;
  readonly progress: EventProgress;
  /** Last attempt, or undefined if none was made yet. */
  readonly sent: SentAttempt | undefined;
  /** Hash of the production subscription in Redis. */
  readonly subscription: Readonly<Record<string, string>>;
}

/** Returns the report for a delivery. Has no side effects. */
export function reportDelivery(facts: DeliveryFacts): SandboxDelivery {
  const { run, inbox, ref, simulation, progress, sent } = facts;
  const plan = sent && planDelivery(simulation, sent.retryMs, runJitter(run, inbox, ref));
  return {
    subscriptionPublicId: inbox.sub,
    state: progress.state,
    heldBy: OPEN.includes(progress.state) ? heldBy(facts.subscription) : null,
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

function heldBy({ endpoint, send, health }: DeliveryFacts['subscription']): SandboxDelivery['heldBy'] {
  if (endpoint === undefined) return 'no_endpoint';
  if (send !== 'open') return 'endpoint_held';
  return isDisabled(health) ? 'endpoint_disabled' : null;
}

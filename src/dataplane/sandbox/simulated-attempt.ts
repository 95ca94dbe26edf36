import { type Simulation, simulatedStatus } from '../../core/delivery/simulation.ts';
import type { AttemptRequest, AttemptResult } from '../dispatcher/endpoint-client.ts';
import { judgeStatus } from '../dispatcher/outcome.ts';

const NO_BODY = Buffer.alloc(0);

/**
 * An attempt that calls nobody: it is answered as the simulation says, and judged as an endpoint's answer is, but for 410:
 * that would disable the endpoint, which stays as it is, and the retries go on. `onSent` gets what would have been sent.
 *
 * @param attempt number of the attempt, from 1
 */
export function simulateAttempt(
  simulation: Simulation,
  attempt: number,
  onSent: (request: AttemptRequest) => void,
): (request: AttemptRequest) => Promise<AttemptResult> {
  return async request => {
    onSent(request);
    const status = simulatedStatus(simulation, attempt);
    const { outcome, reason } = judgeStatus(status);
    return {
      outcome: outcome === 'disabled' ? 'failed' : outcome,
      reason,
      status,
      latencyMs: 0,
      responseBody: NO_BODY,
      truncated: false,
    };
  };
}

import { type Simulation, simulatedStatus } from '../../core/delivery/simulation.ts';
import type { AttemptRequest, AttemptResult } from '../dispatcher/endpoint-client.ts';
import { judgeStatus } from '../dispatcher/outcome.ts';

const NO_BODY = Buffer.alloc(0);

/**
 * Creates an attempt which does not call the endpoint. The response is determined by the simulation and evaluated like
 * any endpoint's response, except for a 410, which would disable the endpoint. In this case the endpoint is left
 * unchanged and retries continue. `onSent` is called with the request which would have been sent.
 *
 * @param attempt number of the attempt, starting at 1
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

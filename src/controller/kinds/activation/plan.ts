import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { ActivationStatus } from '../../../api/kinds/activation.ts';
import { activationId } from '../../../core/ids/ids.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import { type Outcome, waitingForReference } from '../../engine/outcome.ts';

const condition = CONDITION.Activation;
const reason = REASON.Activation;

export interface ActivationFacts {
  readonly namespace: string;
  readonly integration: string;
  readonly groupKey: string;
  /** True if this Activation has been revoked. */
  readonly revoked: boolean;
  /** The name of another Activation that closes the pair, if it is known. */
  readonly revokedBy?: string | undefined;
  /** True if the gate of this pair is open in Redis. */
  readonly open: boolean;
  readonly workspaceExists: boolean;
  /** The integration state. Undefined if the integration does not exist. */
  readonly state: IntegrationState | undefined;
}

type EffectiveReason = keyof typeof REASON.Activation.Effective;

const EFFECTIVE_MESSAGE: Record<Exclude<EffectiveReason, 'RevokedElsewhere'>, string> = {
  Routing: 'events with this group key are routed to the integration',
  IntegrationPending: 'no events are routed until the partner accepts the integration',
  Revoked: 'this activation is revoked',
  IntegrationClosed: 'the integration is closed',
};

function effectiveMessage(effective: EffectiveReason, { revokedBy }: ActivationFacts): string {
  if (effective !== 'RevokedElsewhere') return EFFECTIVE_MESSAGE[effective];
  const other = revokedBy === undefined ? 'another Activation' : `Activation ${revokedBy}`;
  return `the group key is closed because ${other} for the same integration and group key is revoked. To open the group key, set revoked of that Activation to false or delete it`;
}

function effectiveReason({ revoked, open, state }: ActivationFacts): EffectiveReason {
  if (revoked) return 'Revoked';
  if (!open) return 'RevokedElsewhere';
  if (state === 'Active') return 'Routing';
  return state === 'Pending' ? 'IntegrationPending' : 'IntegrationClosed';
}

/** Returns the status of an Activation after its pair has been applied. */
export function planActivation(facts: ActivationFacts): Outcome<ActivationStatus> {
  const status = { publicId: activationId(facts.namespace, facts.integration, facts.groupKey) };
  if (!facts.workspaceExists) {
    return waitingForReference(reason.Ready.WaitingForWorkspace, missingWorkspaceMessage(facts.namespace), { status });
  }
  if (facts.state === undefined) {
    return waitingForReference(
      reason.Ready.WaitingForIntegration,
      `integration ${facts.integration} does not exist in namespace ${facts.namespace} yet. Create it, or check spec.integration and the namespace`,
      {
        status,
      },
    );
  }
  const effective = effectiveReason(facts);
  return {
    status,
    conditions: [
      {
        type: condition.Ready,
        status: 'True',
        reason: facts.open ? reason.Ready.GateOpen : reason.Ready.GateClosed,
        message: facts.open ? 'the gate is open' : 'the gate is closed',
      },
      {
        type: condition.Effective,
        status: effective === 'Routing' ? 'True' : 'False',
        reason: reason.Effective[effective],
        message: effectiveMessage(effective, facts),
      },
    ],
  };
}

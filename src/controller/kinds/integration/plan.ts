import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { IntegrationStatus } from '../../../api/kinds/integration.ts';
import { publicId } from '../../../core/ids/ids.ts';
import type { IntegrationState } from '../../../core/routing/integration-state.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import type { DesiredCondition } from '../../engine/conditions.ts';
import { type Outcome, waitingForReference } from '../../engine/outcome.ts';
import type { InvitationPlan } from './invitation.ts';

const condition = CONDITION.Integration;
const reason = REASON.Integration;

export interface IntegrationFacts {
  readonly namespace: string;
  readonly name: string;
  readonly state: IntegrationState;
  /** True if the invitation was accepted by the partner. False if the producer specified the workspace. */
  readonly accepted: boolean;
  /** The value of spec.workspace. */
  readonly workspace: string | undefined;
  /** True if a Subscription in that workspace uses the integration, which means that the workspace has agreed. */
  readonly subscribed: boolean;
  readonly workspaceExists: boolean;
  /** Undefined if an invitation is required, but the workspace does not own its namespace yet. */
  readonly invitation: InvitationPlan | undefined;
}

const ACCEPTED_MESSAGE = {
  Pending: 'no events are routed until the partner accepts the invitation',
  Declined: 'the partner declined the invitation',
  Expired: 'the invitation has expired. To invite the partner again, create a new Integration',
  Revoked: 'the producer revoked the integration',
} as const;

/**
 * Returns the Admitted condition. The condition shows whether the receiving workspace has agreed. Only set while the
 * integration is Active. To prevent producers from finding out which workspaces exist, a workspace that doesn't exist
 * results in the same condition as one that doesn't subscribe.
 */
function admission({ state, accepted, workspace, subscribed }: IntegrationFacts): DesiredCondition[] {
  if (state !== 'Active') return [];
  const type = condition.Admitted;
  if (accepted) {
    return [
      {
        type,
        status: 'True',
        reason: reason.Admitted.InvitationAccepted,
        message: 'the partner accepted the invitation',
      },
    ];
  }
  if (subscribed) {
    const message = `workspace ${workspace} has a Subscription that uses this integration`;
    return [{ type, status: 'True', reason: reason.Admitted.Subscribed, message }];
  }
  const message = `workspace ${workspace} does not have a Subscription that uses this integration. Until it does, no events are routed. Check the name in spec.workspace, or ask the partner to subscribe`;
  return [{ type, status: 'False', reason: reason.Admitted.WorkspaceNotAdmitting, message }];
}

/** Returns the integration status after its state has been applied. */
export function planIntegration(facts: IntegrationFacts): Outcome<IntegrationStatus> {
  const { namespace, name, state } = facts;
  const { invitation, conditions: sent = [], events = [] } = facts.invitation ?? {};
  const status = { publicId: publicId('Integration', namespace, name), invitation };
  const accepted =
    state === 'Active'
      ? {
          type: condition.Accepted,
          status: 'True' as const,
          reason: facts.accepted ? reason.Accepted.InvitationAccepted : reason.Accepted.DirectGrant,
          message: facts.accepted
            ? 'the partner accepted the invitation'
            : 'the producer granted access to the receiving workspace',
        }
      : {
          type: condition.Accepted,
          status: 'False' as const,
          reason: reason.Accepted[state],
          message: ACCEPTED_MESSAGE[state],
        };
  if (!facts.workspaceExists) {
    const message = missingWorkspaceMessage(namespace);
    return waitingForReference(reason.Ready.WaitingForWorkspace, message, { status, conditions: [accepted, ...sent] });
  }
  if (facts.invitation === undefined) {
    const message = `workspace ${namespace} does not own namespace ${namespace} yet. The invitation is sent when it does`;
    return waitingForReference(reason.Ready.WaitingForWorkspace, message, { status, conditions: [accepted] });
  }
  const ready =
    state === 'Active' ? reason.Ready.Active : state === 'Pending' ? reason.Ready.Pending : reason.Ready.Closed;
  return {
    status,
    conditions: [
      {
        type: condition.Ready,
        status: 'True',
        reason: ready,
        message: `the routes are applied. The integration is ${state.toLowerCase()}`,
      },
      accepted,
      ...admission(facts),
      ...sent,
    ],
    events,
  };
}

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
  /** Whether the invited partner accepted; else the producer named the workspace. */
  readonly accepted: boolean;
  /** As the spec names it. */
  readonly workspace: string | undefined;
  /** A Subscription of that workspace uses the integration: it consents. */
  readonly subscribed: boolean;
  readonly workspaceExists: boolean;
  /** Undefined: it needs one, and cannot have one before the namespace is the workspace's. */
  readonly invitation: InvitationPlan | undefined;
}

const ACCEPTED_MESSAGE = {
  Pending: 'the partner has not accepted yet; nothing is routed',
  Declined: 'the partner declined',
  Expired: 'the invitation was not answered in time',
  Revoked: 'the producer revoked it',
} as const;

/**
 * Whether the receiving workspace consents, while the integration is Active. One that does not exist, one that names
 * nothing of this producer and a misspelt one say the same: nobody can find out which workspaces there are.
 */
function admission({ state, accepted, workspace, subscribed }: IntegrationFacts): DesiredCondition[] {
  if (state !== 'Active') return [];
  const type = condition.Admitted;
  if (accepted) {
    return [{ type, status: 'True', reason: reason.Admitted.InvitationAccepted, message: 'the partner accepted' }];
  }
  if (subscribed) {
    const message = `workspace ${workspace} subscribes with it`;
    return [{ type, status: 'True', reason: reason.Admitted.Subscribed, message }];
  }
  const message = `no Subscription of a workspace ${workspace} uses it yet: nothing is routed; check the name in spec.workspace, or ask the partner to subscribe`;
  return [{ type, status: 'False', reason: reason.Admitted.WorkspaceNotAdmitting, message }];
}

/** The status of an integration whose state is in force. */
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
          message: facts.accepted ? 'the partner accepted' : 'the producer named the receiving workspace',
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
    const message = `the namespace ${namespace} is not the workspace's yet; the partner is invited when it is`;
    return waitingForReference(reason.Ready.WaitingForWorkspace, message, { status, conditions: [accepted] });
  }
  const ready =
    state === 'Active' ? reason.Ready.Active : state === 'Pending' ? reason.Ready.Pending : reason.Ready.Closed;
  return {
    status,
    conditions: [
      { type: condition.Ready, status: 'True', reason: ready, message: `in force: ${state}` },
      accepted,
      ...admission(facts),
      ...sent,
    ],
    events,
  };
}

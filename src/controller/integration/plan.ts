import { CONDITION, REASON } from '../../api/condition-reasons.ts';
import type { IntegrationStatus } from '../../api/integration.ts';
import { publicId } from '../../core/ids.ts';
import type { IntegrationState } from '../../core/integration-state.ts';
import { missingWorkspaceMessage } from '../missing-workspace.ts';
import { type Outcome, waitingForReference } from '../runtime/outcome.ts';
import type { InvitationPlan } from './invitation.ts';

const condition = CONDITION.Integration;
const reason = REASON.Integration;

export interface IntegrationFacts {
  readonly namespace: string;
  readonly name: string;
  readonly state: IntegrationState;
  /** Whether a partner was invited by e-mail; else the producer named the workspace. */
  readonly invited: boolean;
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
          reason: facts.invited ? reason.Accepted.InvitationAccepted : reason.Accepted.DirectGrant,
          message: facts.invited ? 'the partner accepted' : 'the producer named the receiving workspace',
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
      ...sent,
    ],
    events,
  };
}

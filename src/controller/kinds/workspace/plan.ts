import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { WorkspaceStatus } from '../../../api/kinds/workspace.ts';
import { WORKSPACE_LABEL } from '../../../api/well-known.ts';
import { tenantId } from '../../../core/ids/ids.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import { type Outcome, waiting, waitingForReference } from '../../engine/outcome.ts';

export interface WorkspaceFacts {
  readonly name: string;
  /** The namespace of the same name: ours (made or labelled), another's, or going away. */
  readonly namespace: 'adopted' | 'foreign' | 'terminating';
  readonly accountExists: boolean;
  readonly account: string;
  /** The status says Ready=True. */
  readonly wasReady: boolean;
  readonly producer: boolean;
  /** Queues wait for tokens that the account does not have; undefined: not known (yet). */
  readonly short: boolean | undefined;
  /** The condition as the status has it: told again once it was told. */
  readonly insufficientTokens: Condition | undefined;
  /** Redis has not answered for a minute. */
  readonly dataPlaneAway: boolean;
  /** The condition as the status has it. */
  readonly dataPlaneReachable: Condition | undefined;
}

/** Said of an outage, and afterwards that it is over; never of a workspace that had none. */
export function reachability(facts: Pick<WorkspaceFacts, 'dataPlaneAway' | 'dataPlaneReachable'>): DesiredCondition[] {
  const type = CONDITION.Workspace.DataPlaneReachable;
  const reasons = REASON.Workspace.DataPlaneReachable;
  if (facts.dataPlaneAway) {
    const message = 'Redis has not answered for a minute: events are not accepted, changes wait; what is applied stays';
    return [{ type, status: 'False', reason: reasons.RedisUnavailable, message }];
  }
  if (facts.dataPlaneReachable === undefined) return [];
  return [{ type, status: 'True', reason: reasons.RedisAnswers, message: 'Redis answers again' }];
}

/** Said while tokens are spent, and afterwards that they are not; never of an account that always had some. */
function tokens({ short, insufficientTokens: before }: WorkspaceFacts): DesiredCondition[] {
  const type = CONDITION.Workspace.InsufficientTokens;
  const reasons = REASON.Workspace.InsufficientTokens;
  if (short === undefined) return before === undefined ? [] : [before];
  if (short) {
    const message = "the account's tokens are spent: distribution pauses, nothing is dropped; raise includedTokens";
    return [{ type, status: 'True', reason: reasons.TokensSpent, message }];
  }
  if (before === undefined) return [];
  return [{ type, status: 'False', reason: reasons.TokensLeft, message: 'the account has tokens again' }];
}

/** How often a namespace of somebody else is looked at, ms: it has no label, so no watch brings its deletion. */
const FOREIGN_CHECK_MS = 60_000;

/** The status of a workspace, from what was found. */
export function planWorkspace(facts: WorkspaceFacts): Outcome<WorkspaceStatus> {
  const { name } = facts;
  const reasons = REASON.Workspace.Ready;
  const status = { publicId: tenantId(name), namespace: name, producer: facts.producer };
  if (facts.namespace === 'foreign') {
    const message = `namespace ${name} exists and is not for this workspace: label it ${WORKSPACE_LABEL}=${name}, or choose another name`;
    return {
      status: { ...status, namespace: undefined },
      conditions: [
        { type: CONDITION.Workspace.Ready, status: 'False', reason: reasons.NamespaceNotAdopted, message },
        { type: CONDITION.Workspace.Stalled, status: 'True', reason: reasons.NamespaceNotAdopted, message },
      ],
      events: [{ type: 'Warning', reason: reasons.NamespaceNotAdopted, message }],
      requeueAfterMs: FOREIGN_CHECK_MS,
    };
  }
  if (facts.namespace === 'terminating') {
    return waiting(CONDITION.Workspace.Reconciling, `namespace ${name} is being deleted`, {
      status,
      requeueAfterMs: 5_000,
    });
  }
  if (!facts.accountExists) {
    const message = `account ${facts.account} does not exist; create it. If it was deleted, events go on until its included tokens are spent`;
    return waitingForReference(reasons.WaitingForAccount, message, {
      status,
      // A new workspace may come before its account.
      events: facts.wasReady ? [{ type: 'Warning', reason: reasons.WaitingForAccount, message }] : [],
      conditions: [...tokens(facts), ...reachability(facts)],
    });
  }
  return {
    status,
    conditions: [
      {
        type: CONDITION.Workspace.Ready,
        status: 'True',
        reason: reasons.NamespaceReady,
        message: 'the namespace is there and the routes are in force',
      },
      ...tokens(facts),
      ...reachability(facts),
    ],
  };
}

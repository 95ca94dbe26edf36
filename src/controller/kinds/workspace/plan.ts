import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { WorkspaceStatus } from '../../../api/kinds/workspace.ts';
import { PAUSED_ANNOTATION, WORKSPACE_LABEL } from '../../../api/well-known.ts';
import { tenantId } from '../../../core/ids/ids.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import { type Outcome, waiting, waitingForReference } from '../../engine/outcome.ts';

export interface WorkspaceFacts {
  readonly name: string;
  /** The namespace of the same name: adopted (created or labelled), foreign, or being deleted. */
  readonly namespace: 'adopted' | 'foreign' | 'terminating';
  readonly accountExists: boolean;
  readonly account: string;
  /** Value of the annotation for a pause, in a workspace that is not paused. */
  readonly pauseValue: string | undefined;
  /** The status has Ready=True. */
  readonly wasReady: boolean;
  readonly producer: boolean;
  /** Queues wait for tokens that the account does not have; undefined: not known yet. */
  readonly short: boolean | undefined;
  /** The condition in the status now. Once set, it stays in the status. */
  readonly insufficientTokens: Condition | undefined;
  /** Redis has not answered for a minute. */
  readonly dataPlaneAway: boolean;
  /** The condition in the status now. */
  readonly dataPlaneReachable: Condition | undefined;
}

/** Returns the condition during and after an outage, and none for a workspace that never had one. */
export function reachability(facts: Pick<WorkspaceFacts, 'dataPlaneAway' | 'dataPlaneReachable'>): DesiredCondition[] {
  const type = CONDITION.Workspace.DataPlaneReachable;
  const reasons = REASON.Workspace.DataPlaneReachable;
  if (facts.dataPlaneAway) {
    const message =
      'Redis has not responded for one minute, so events are not accepted and changes are delayed. Check that Redis is running and reachable';
    return [{ type, status: 'False', reason: reasons.RedisUnavailable, message }];
  }
  if (facts.dataPlaneReachable === undefined) return [];
  return [{ type, status: 'True', reason: reasons.RedisAnswers, message: 'Redis is available again' }];
}

/** Returns the condition during and after a shortage, and none for an account that never had one. */
function tokens({ short, insufficientTokens: before }: WorkspaceFacts): DesiredCondition[] {
  const type = CONDITION.Workspace.InsufficientTokens;
  const reasons = REASON.Workspace.InsufficientTokens;
  if (short === undefined) return before === undefined ? [] : [before];
  if (short) {
    const message =
      'routing is paused because the account has used all of its tokens. No events are dropped. To resume routing, increase spec.includedTokens';
    return [{ type, status: 'True', reason: reasons.TokensSpent, message }];
  }
  if (before === undefined) return [];
  return [{ type, status: 'False', reason: reasons.TokensLeft, message: 'the account has tokens again' }];
}

/** Returns Ready=True. An annotation that pauses nothing, and looks as if it did, is the reason. */
function ready({ pauseValue = 'false' }: WorkspaceFacts): DesiredCondition {
  const reasons = REASON.Workspace.Ready;
  const type = CONDITION.Workspace.Ready;
  const message = 'the namespace exists and the routes are applied';
  if (pauseValue === 'false') return { type, status: 'True', reason: reasons.NamespaceReady, message };
  const ignored = `the workspace is not paused: only the value "true" of the annotation ${PAUSED_ANNOTATION} pauses it`;
  return { type, status: 'True', reason: reasons.PauseIgnored, message: `${message}; ${ignored}` };
}

/** Requeue interval for a foreign namespace, ms: it has no label, so the watch does not see its deletion. */
const FOREIGN_CHECK_MS = 60_000;

/** Returns the status of a workspace. */
export function planWorkspace(facts: WorkspaceFacts): Outcome<WorkspaceStatus> {
  const { name } = facts;
  const reasons = REASON.Workspace.Ready;
  const status = { publicId: tenantId(name), namespace: name, producer: facts.producer };
  if (facts.namespace === 'foreign') {
    const message = `namespace ${name} exists but does not have the label of this workspace. Add the label ${WORKSPACE_LABEL}=${name}, or choose another name`;
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
    const message = `account ${facts.account} does not exist. Create the account. If you deleted it, events continue to flow until its included tokens are used`;
    return waitingForReference(reasons.WaitingForAccount, message, {
      status,
      // A new workspace may be created before its account.
      events: facts.wasReady ? [{ type: 'Warning', reason: reasons.WaitingForAccount, message }] : [],
      conditions: [...tokens(facts), ...reachability(facts)],
    });
  }
  return {
    status,
    conditions: [ready(facts), ...tokens(facts), ...reachability(facts)],
  };
}

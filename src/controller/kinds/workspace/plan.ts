import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { WorkspaceStatus } from '../../../api/kinds/workspace.ts';
import { PAUSED_ANNOTATION, WORKSPACE_LABEL } from '../../../api/well-known.ts';
import { tenantId } from '../../../core/ids/ids.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import { type Outcome, waiting, waitingForReference } from '../../engine/outcome.ts';

export interface WorkspaceFacts {
  readonly name: string;
  /**
   * The state of the namespace with the same name. It is `adopted` if it was created or labelled for this workspace.
   */
  readonly namespace: 'adopted' | 'foreign' | 'terminating';
  readonly accountExists: boolean;
  readonly account: string;
  /** The value of the pause annotation, if the workspace is not paused. */
  readonly pauseValue: string | undefined;
  /** True if the status has Ready=True. */
  readonly wasReady: boolean;
  readonly producer: boolean;
  /** True if there are queues that wait for tokens of the account. Undefined if this is not known yet. */
  readonly short: boolean | undefined;
  /** The condition that is currently in the status. After it has been set, it is not removed from the status. */
  readonly insufficientTokens: Condition | undefined;
  /** True if Redis has not responded for a minute. */
  readonly dataPlaneAway: boolean;
  /** The condition that is currently in the status. */
  readonly dataPlaneReachable: Condition | undefined;
}

/**
 * Returns the DataPlaneReachable condition during and after an outage. Workspaces that have not had an outage do not
 * have this condition.
 */
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

/**
 * Returns the InsufficientTokens condition during and after a shortage. Workspaces that have not had a shortage do not
 * have this condition.
 */
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

/**
 * Returns the Ready condition with status True. If the pause annotation has an invalid value, this is shown in the
 * reason.
 */
function ready({ pauseValue = 'false' }: WorkspaceFacts): DesiredCondition {
  const reasons = REASON.Workspace.Ready;
  const type = CONDITION.Workspace.Ready;
  const message = 'the namespace exists and the routes are applied';
  if (pauseValue === 'false') return { type, status: 'True', reason: reasons.NamespaceReady, message };
  const ignored = `the workspace is not paused: only the value "true" of the annotation ${PAUSED_ANNOTATION} pauses it`;
  return { type, status: 'True', reason: reasons.PauseIgnored, message: `${message}; ${ignored}` };
}

/**
 * The requeue interval for a foreign namespace, in milliseconds. The namespace does not have the label, so its deletion
 * is not visible to the watch.
 */
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
      // We do not record an Event for a new workspace, because it may be created before its account.
      events: facts.wasReady ? [{ type: 'Warning', reason: reasons.WaitingForAccount, message }] : [],
      conditions: [...tokens(facts), ...reachability(facts)],
    });
  }
  return {
    status,
    conditions: [ready(facts), ...tokens(facts), ...reachability(facts)],
  };
}

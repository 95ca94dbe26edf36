import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import { DEFAULT_INSTANCE } from '../../../api/instance.ts';
import type { WorkspaceStatus } from '../../../api/kinds/workspace.ts';
import { INSTANCE_LABEL, PAUSED_ANNOTATION, WORKSPACE_LABEL } from '../../../api/well-known.ts';
import { tenantId } from '../../../core/ids/ids.ts';
import type { Condition, DesiredCondition } from '../../engine/conditions.ts';
import { type Outcome, waiting, waitingForReference } from '../../engine/outcome.ts';

export interface WorkspaceFacts {
  readonly name: string;
  /**
   * The namespace state with the same name. `adopted` means that the namespace was created or labeled for this
   * workspace.
   */
  readonly namespace: 'adopted' | 'foreign' | 'terminating';
  /** The name of this installation. Defaults to the one without a name. */
  readonly instance?: string;
  /** The installation specified by the label of a foreign namespace. Defaults to the default one. */
  readonly namespaceInstance?: string | undefined;
  readonly accountExists: boolean;
  readonly account: string;
  /** The value of the annotation for a pause. Only set if the workspace is not paused. */
  readonly pauseValue: string | undefined;
  /** True if Ready is True in the status. */
  readonly wasReady: boolean;
  readonly producer: boolean;
  /** True if there are queues waiting for tokens of the account. Undefined if this is not known yet. */
  readonly short: boolean | undefined;
  /** Condition currently in the status. Once set, it will not be removed. */
  readonly insufficientTokens: Condition | undefined;
  /** True if Redis has not responded for one minute. */
  readonly dataPlaneAway: boolean;
  /** Condition currently in the status. */
  readonly dataPlaneReachable: Condition | undefined;
}

/**
 * Returns the DataPlaneReachable condition. The condition is added during an outage and is kept after that. Only set if
 * an outage has affected the workspace.
 */
export function reachability(facts: Pick<WorkspaceFacts, 'dataPlaneAway' | 'dataPlaneReachable'>): DesiredCondition[] {
  const type = CONDITION.Workspace.DataPlaneReachable;
  const reasons = REASON.Workspace.DataPlaneReachable;
  if (facts.dataPlaneAway) {
    const message =
      'Redis has not responded for one minute. Until it does, events are not accepted and changes are delayed. Check that Redis is running and reachable';
    return [{ type, status: 'False', reason: reasons.RedisUnavailable, message }];
  }
  if (facts.dataPlaneReachable === undefined) return [];
  return [{ type, status: 'True', reason: reasons.RedisAnswers, message: 'Redis is available again' }];
}

/**
 * Returns the InsufficientTokens condition. The condition is added during a shortage and is kept after that. Only set
 * if a shortage has affected the workspace.
 */
function tokens({ short, insufficientTokens: before }: WorkspaceFacts): DesiredCondition[] {
  const type = CONDITION.Workspace.InsufficientTokens;
  const reasons = REASON.Workspace.InsufficientTokens;
  if (short === undefined) return before === undefined ? [] : [before];
  if (short) {
    const message =
      'routing is paused because the account has used all of its tokens. No events are dropped. To resume routing, increase spec.includedTokens of the Account or change its plan';
    return [{ type, status: 'True', reason: reasons.TokensSpent, message }];
  }
  if (before === undefined) return [];
  return [{ type, status: 'False', reason: reasons.TokensLeft, message: 'the account has tokens again' }];
}

/** Returns Ready=True. The reason will indicate if the pause annotation has an invalid value. */
function ready({ pauseValue = 'false' }: WorkspaceFacts): DesiredCondition {
  const reasons = REASON.Workspace.Ready;
  const type = CONDITION.Workspace.Ready;
  const message = 'the namespace exists and the routes are applied';
  if (pauseValue === 'false') return { type, status: 'True', reason: reasons.NamespaceReady, message };
  const ignored = `the workspace is not paused, because the value of the ${PAUSED_ANNOTATION} annotation is not "true"`;
  return { type, status: 'True', reason: reasons.PauseIgnored, message: `${message}; ${ignored}` };
}

/**
 * The delay before requeuing a workspace with a foreign namespace, in milliseconds. Since this namespace does not have
 * the label, the watch does not report when it is deleted.
 */
const FOREIGN_CHECK_MS = 60_000;

/** Returns the reason why a foreign namespace was not adopted, including what to change. */
function foreignMessage({ name, instance = '', namespaceInstance = '' }: WorkspaceFacts): string {
  const label = `${WORKSPACE_LABEL}=${name}`;
  const other = 'or choose another name';
  if (instance !== DEFAULT_INSTANCE) {
    return `namespace ${name} exists but does not have the labels of this workspace. Add the labels ${label} and ${INSTANCE_LABEL}=${instance}, ${other}`;
  }
  const missing = `namespace ${name} exists but does not have the label of this workspace. Add the ${label} label`;
  return namespaceInstance === DEFAULT_INSTANCE
    ? `${missing}, ${other}`
    : `${missing} and remove the ${INSTANCE_LABEL} label of another installation, ${other}`;
}

/** Returns which account to create. An account of another installation can have the same name. */
function missingAccountMessage({ account, instance = '' }: WorkspaceFacts): string {
  const missing =
    instance === DEFAULT_INSTANCE
      ? `account ${account} does not exist. Create the account`
      : `account ${account} does not exist in the installation ${instance}. Create the account with spec.instance: ${instance}`;
  return `${missing}. If spec.account is wrong, delete the Workspace and create it again`;
}

/** Returns the workspace status. */
export function planWorkspace(facts: WorkspaceFacts): Outcome<WorkspaceStatus> {
  const { name } = facts;
  const reasons = REASON.Workspace.Ready;
  const status = { publicId: tenantId(name), namespace: name, producer: facts.producer };
  if (facts.namespace === 'foreign') {
    const message = foreignMessage(facts);
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
    return waiting(reasons.NamespaceTerminating, `namespace ${name} is being deleted`, {
      status,
      requeueAfterMs: 5_000,
    });
  }
  if (!facts.accountExists) {
    const message = missingAccountMessage(facts);
    return waitingForReference(reasons.WaitingForAccount, message, {
      status,
      // New workspaces do not have an Event, because they may be created before their account.
      events: facts.wasReady ? [{ type: 'Warning', reason: reasons.WaitingForAccount, message }] : [],
      conditions: [...tokens(facts), ...reachability(facts)],
    });
  }
  return {
    status,
    conditions: [ready(facts), ...tokens(facts), ...reachability(facts)],
  };
}

import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { BlockSpec, BlockStatus } from '../../../api/kinds/block.ts';
import { blockId } from '../../../core/ids/ids.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import { type Outcome, waitingForReference } from '../../engine/outcome.ts';

const condition = CONDITION.Block;
const reason = REASON.Block;

export interface BlockFacts {
  readonly namespace: string;
  readonly integration: string;
  readonly target: BlockSpec['target'];
  readonly workspaceExists: boolean;
  readonly integrationExists: boolean;
  readonly targetExists: boolean;
  /** The number of admitted subscriptions covered by this Block in the applied routes. */
  readonly pausedSubscriptions: number;
}

/**
 * Returns the status of a Block after its routes have been applied. Targets created later will also be covered by the
 * routes.
 */
export function planBlock(facts: BlockFacts): Outcome<BlockStatus> {
  const { namespace, integration, target, pausedSubscriptions } = facts;
  const status = { publicId: blockId(namespace, integration, target.kind, target.name), pausedSubscriptions };
  if (!facts.workspaceExists) {
    return waitingForReference(reason.Ready.WaitingForWorkspace, missingWorkspaceMessage(namespace), { status });
  }
  if (!facts.integrationExists || !facts.targetExists) {
    const missing = facts.integrationExists ? 'WaitingForTarget' : 'WaitingForIntegration';
    const [what, field] = facts.integrationExists
      ? [`${target.kind} ${target.name}`, 'spec.target']
      : [`integration ${integration}`, 'spec.integration'];
    const message = `${what} does not exist in namespace ${namespace} yet. Until it does, nothing is blocked. Create it, or check ${field} and the namespace`;
    const enforced = {
      type: condition.Enforced,
      status: 'Unknown',
      reason: reason.Enforced[missing],
      message,
    } as const;
    return waitingForReference(reason.Ready[missing], message, { status, conditions: [enforced] });
  }
  return {
    status,
    conditions: [
      { type: condition.Ready, status: 'True', reason: reason.Ready.Applied, message: 'the routes are applied' },
      {
        type: condition.Enforced,
        status: 'True',
        reason: reason.Enforced.Enforced,
        message: 'no events of the target are routed to the integration. Events in the inbox are held',
      },
    ],
  };
}

import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { CatalogStreamStatus } from '../../../api/kinds/catalog-stream.ts';
import { roundCount } from '../../../core/delivery/delivery-state.ts';
import { publicId, tenantId } from '../../../core/ids/ids.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import type { DesiredCondition } from '../../engine/conditions.ts';
import { type Finalization, type Outcome, waitingForReference } from '../../engine/outcome.ts';

const condition = CONDITION.CatalogStream;
const reason = REASON.CatalogStream;

export interface StreamFacts {
  readonly namespace: string;
  readonly name: string;
  readonly published: boolean;
  readonly workspaceExists: boolean;
}

function statusOf({ namespace, name }: StreamFacts): NonNullable<Outcome<CatalogStreamStatus>['status']> {
  const tenant = tenantId(namespace);
  return {
    publicId: publicId('CatalogStream', namespace, name),
    queue: name,
    queueVisibility: 'Public',
    tenantPublicId: tenant,
    ingressPath: `/events/${tenant}/${name}`,
  };
}

const DEPRECATED =
  'the stream is not in the catalog and does not accept new subscriptions. To publish it, set spec.public to true';
const DELETED = 'the stream is not in the catalog and does not accept new subscriptions because it is being deleted';

/** Returns the Published condition. @param withdrawn the message if the stream is not in the catalog */
function publication(
  { namespace, published, workspaceExists }: StreamFacts,
  withdrawn = published ? undefined : DEPRECATED,
): DesiredCondition {
  const type = condition.Published;
  if (!workspaceExists) {
    const message = missingWorkspaceMessage(namespace);
    return { type, status: 'Unknown', reason: reason.Published.WaitingForWorkspace, message };
  }
  return withdrawn === undefined
    ? { type, status: 'True', reason: reason.Published.Published, message: 'the stream is in the catalog' }
    : { type, status: 'False', reason: reason.Published.Deprecated, message: withdrawn };
}

/** Returns the stream status after its routes have been applied. */
export function planStream(facts: StreamFacts): Outcome<CatalogStreamStatus> {
  const status = statusOf(facts);
  if (!facts.workspaceExists) {
    const message = missingWorkspaceMessage(facts.namespace);
    return waitingForReference(reason.Ready.WaitingForWorkspace, message, { status, conditions: [publication(facts)] });
  }
  return {
    status,
    conditions: [
      {
        type: condition.Ready,
        status: 'True',
        reason: reason.Ready.QueueReady,
        message: `you can POST events to ${status.ingressPath}`,
      },
      publication(facts),
    ],
  };
}

/** The minimum and maximum time between two checks of a draining stream, in milliseconds. */
const DRAIN_CHECK_MS = { least: 2_000, most: 60_000 };

/**
 * Returns the status for a stream which is being deleted, but still has undelivered events.
 *
 * The counts are rounded, so the status is only written if they change by an order of magnitude. The waits
 * between checks double, because a partner can delay the last event until the end of the retention period.
 */
export function planDraining(
  facts: StreamFacts,
  drain: { readonly unrouted: number; readonly open: number },
  drainingForMs: number,
): Exclude<Finalization<CatalogStreamStatus>, 'done'> {
  const message = `the stream does not accept new events and is still delivering the remaining events: ${roundCount(drain.open)} in inboxes and ${roundCount(drain.unrouted)} to route. To drop these events, set spec.deletionPolicy to Delete`;
  return {
    status: statusOf(facts),
    waitingMs: Math.min(DRAIN_CHECK_MS.most, Math.max(DRAIN_CHECK_MS.least, drainingForMs)),
    conditions: [
      { type: condition.Ready, status: 'False', reason: reason.Ready.Draining, message },
      { type: condition.Reconciling, status: 'True', reason: reason.Reconciling.Draining, message },
      publication(facts, DELETED),
    ],
  };
}

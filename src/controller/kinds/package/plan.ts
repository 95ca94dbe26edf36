import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { PackageStatus } from '../../../api/kinds/package.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import type { DesiredCondition } from '../../engine/conditions.ts';
import { type Finalization, type Outcome, waitingForReference } from '../../engine/outcome.ts';
import { nameSome } from '../named-objects.ts';

const condition = CONDITION.Package;
const reason = REASON.Package;

export interface PackageFacts {
  readonly namespace: string;
  readonly name: string;
  /** The value of spec.streams. Duplicates are ignored. */
  readonly streams: readonly string[];
  readonly streamExists: (name: string) => boolean;
  readonly workspaceExists: boolean;
}

function statusOf({ namespace, name, streams }: PackageFacts): NonNullable<Outcome<PackageStatus>['status']> {
  return { publicId: publicId('Package', namespace, name), streamCount: new Set(streams).size };
}

function resolution({ streams, streamExists }: PackageFacts): DesiredCondition {
  const missing = new Set(streams.filter(stream => !streamExists(stream)));
  if (missing.size === 0) {
    return {
      type: condition.StreamsResolved,
      status: 'True',
      reason: reason.StreamsResolved.AllFound,
      message: 'all streams in the list exist',
    };
  }
  return {
    type: condition.StreamsResolved,
    status: 'False',
    reason: reason.StreamsResolved.StreamsMissing,
    message: `some streams do not exist yet, so a Block on the package does not apply to them. Check the names in spec.streams, or create the streams: ${nameSome(missing)}`,
  };
}

/** Returns the package status after its routes have been applied. */
export function planPackage(facts: PackageFacts): Outcome<PackageStatus> {
  const status = statusOf(facts);
  if (!facts.workspaceExists) {
    const message = missingWorkspaceMessage(facts.namespace);
    return waitingForReference(reason.Ready.WaitingForWorkspace, message, { status, conditions: [resolution(facts)] });
  }
  return {
    status,
    conditions: [
      { type: condition.Ready, status: 'True', reason: reason.Ready.Compiled, message: 'the routes are applied' },
      resolution(facts),
    ],
  };
}

/** Requeue interval in milliseconds. Needed because we don't watch for the deletion of the namespace. */
const PROTECTION_CHECK_MS = 5_000;

/**
 * Returns the status for a package which is being deleted, but is still referenced by a Block. Like a volume in use, it
 * will be kept.
 */
export function planStillBlocking(
  facts: PackageFacts,
  blocks: readonly string[],
): Exclude<Finalization<PackageStatus>, 'done'> {
  const message = `the package is being deleted but still applies to its streams. Delete the Blocks that refer to it: ${nameSome(blocks)}`;
  const { StillBlocking } = reason.Ready;
  return {
    status: statusOf(facts),
    waitingMs: PROTECTION_CHECK_MS,
    conditions: [
      { type: condition.Ready, status: 'False', reason: StillBlocking, message },
      { type: condition.Reconciling, status: 'True', reason: reason.Reconciling.Progressing, message },
      resolution(facts),
    ],
    events: [{ type: 'Warning', reason: StillBlocking, message }],
  };
}

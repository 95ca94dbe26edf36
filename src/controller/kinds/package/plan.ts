import { CONDITION, REASON } from '../../../api/condition-reasons.ts';
import type { PackageStatus } from '../../../api/kinds/package.ts';
import { publicId } from '../../../core/ids/ids.ts';
import { missingWorkspaceMessage } from '../../context/missing-workspace.ts';
import type { DesiredCondition } from '../../engine/conditions.ts';
import { type Finalization, type Outcome, waitingForReference } from '../../engine/outcome.ts';

const condition = CONDITION.Package;
const reason = REASON.Package;

/** A message names so many. */
const MOST_NAMED = 10;

export interface PackageFacts {
  readonly namespace: string;
  readonly name: string;
  /** As the spec lists them; duplicates are ignored. */
  readonly streams: readonly string[];
  readonly streamExists: (name: string) => boolean;
  readonly workspaceExists: boolean;
}

function statusOf({ namespace, name, streams }: PackageFacts): NonNullable<Outcome<PackageStatus>['status']> {
  return { publicId: publicId('Package', namespace, name), streamCount: new Set(streams).size };
}

/** `a, b and 3 more`, in the order of the alphabet, so that a repeated look says the same. */
function nameSome(names: Iterable<string>): string {
  const sorted = [...names].toSorted();
  const more = sorted.length - MOST_NAMED;
  return sorted.slice(0, MOST_NAMED).join(', ') + (more > 0 ? ` and ${more} more` : '');
}

function resolution({ streams, streamExists }: PackageFacts): DesiredCondition {
  const missing = new Set(streams.filter(stream => !streamExists(stream)));
  if (missing.size === 0) {
    return {
      type: condition.StreamsResolved,
      status: 'True',
      reason: reason.StreamsResolved.AllFound,
      message: 'every listed stream exists',
    };
  }
  return {
    type: condition.StreamsResolved,
    status: 'False',
    reason: reason.StreamsResolved.StreamsMissing,
    message: `not there, and covered as soon as they are: ${nameSome(missing)}`,
  };
}

/** The status of a package whose routes are in force. */
export function planPackage(facts: PackageFacts): Outcome<PackageStatus> {
  const status = statusOf(facts);
  if (!facts.workspaceExists) {
    const message = missingWorkspaceMessage(facts.namespace);
    return waitingForReference(reason.Ready.WaitingForWorkspace, message, { status, conditions: [resolution(facts)] });
  }
  return {
    status,
    conditions: [
      { type: condition.Ready, status: 'True', reason: reason.Ready.Compiled, message: 'the routes are in force' },
      resolution(facts),
    ],
  };
}

/** Blocks are watched; this is for the namespace, which goes without a word to who holds only its objects. */
const PROTECTION_CHECK_MS = 5_000;

/** The status of a package that is being deleted while Blocks name it: as a volume in use, it stays. */
export function planStillBlocking(
  facts: PackageFacts,
  blocks: readonly string[],
): Exclude<Finalization<PackageStatus>, 'done'> {
  const message = `is being deleted and goes on covering its streams until no Block names it: ${nameSome(blocks)}`;
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

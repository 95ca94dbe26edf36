import type { PatchOp } from './control-plan.ts';

/** The maximum number of commands in a patch. The limit keeps the duration of a script at a few milliseconds. */
const OPS = 400;
/** The maximum number of arguments in a patch with several commands. A command can have 500 of them. */
const ARGS = 2_000;

/** Returns the commands for each patch, in order. There is always at least one patch, because it raises the fence. */
export function slicesOf(ops: readonly PatchOp[]): PatchOp[][] {
  let slice: PatchOp[] = [];
  let args = 0;
  const slices = [slice];
  for (const op of ops) {
    args += op.args.length;
    if (slice.length === OPS || (slice.length > 0 && args > ARGS)) {
      slices.push((slice = []));
      args = op.args.length;
    }
    slice.push(op);
  }
  return slices;
}

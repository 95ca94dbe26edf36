import type { Sluice } from '../../support/sluice.ts';

/** Returns the last message of a process when it becomes the leader, or when it stops leading. */
const TURNS = new Set(['sluice runs', 'started leading', 'lost the Lease', 'stopping']);

/** Returns whether a process reports that it is the leader. */
export async function leads(controller: Sluice): Promise<boolean> {
  const lines = await controller.logLines();
  const last = lines.findLast(({ msg }) => TURNS.has(String(msg)));
  return controller.running() && last?.['msg'] === 'started leading';
}

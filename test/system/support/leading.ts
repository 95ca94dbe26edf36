import type { Sluice } from '../../support/sluice.ts';

/** What a process says last when it begins to lead, and when it does not any more. */
const TURNS = new Set(['sluice runs', 'started leading', 'lost the Lease', 'stopping']);

/** Returns whether a process leads, by its own word. */
export async function leads(controller: Sluice): Promise<boolean> {
  const lines = await controller.logLines();
  const last = lines.findLast(({ msg }) => TURNS.has(String(msg)));
  return controller.running() && last?.['msg'] === 'started leading';
}

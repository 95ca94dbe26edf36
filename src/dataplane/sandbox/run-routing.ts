import { createAdvance } from '../../part/catchup/advance.ts';
import { partOfRun } from '../../part/sandbox/run-client.ts';
import type { SandboxStore } from '../../part/sandbox/sandbox-store.ts';
import { takeOverAll } from '../../part/sandbox/take-over.ts';
import type { RunView } from './run-view.ts';

/**
 * Copies the state of production to the part of a queue in a run. Then routes all events that could not be routed when
 * they were accepted, because their subscription was paused or because they have more deliveries than are allowed in a
 * single step. When the run has reached its limit for deliveries, this stops.
 *
 * @returns whether the state of production was available
 */
export async function routeRun(
  store: Pick<SandboxStore, 'readRoom' | 'countDeliveries'>,
  view: RunView,
  queue: string,
): Promise<boolean> {
  const { tenant, run, ofRun } = view;
  if (!(await takeOverAll({ ...view, queue }))) return false;
  const advance = createAdvance(ofRun);
  for (let more = true; more && (await store.readRoom(tenant, run)) > 0; ) {
    const answer = await advance(partOfRun(tenant, queue));
    if (answer.answer !== 'OK') return true;
    if (answer.references > 0) await store.countDeliveries(tenant, run, answer.references);
    more = answer.more;
  }
  return true;
}

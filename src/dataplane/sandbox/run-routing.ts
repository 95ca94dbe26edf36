import { createAdvance } from '../../part/catchup/advance.ts';
import { partOfRun } from '../../part/sandbox/run-client.ts';
import type { SandboxStore } from '../../part/sandbox/sandbox-store.ts';
import { takeOverAll } from '../../part/sandbox/take-over.ts';
import type { RunView } from './run-view.ts';

/**
 * Copies the production state to the part of a queue in a run, and routes events that could not be routed on
 * acceptance: for subscriptions whose pause has ended, and events with more deliveries than one step allows. Stops when
 * the run has reached its limit of deliveries.
 *
 * @returns whether the production state was available
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

import { createAdvance } from '../../part/catchup/advance.ts';
import { partOfRun } from '../../part/sandbox/run-client.ts';
import type { SandboxStore } from '../../part/sandbox/sandbox-store.ts';
import { takeOverAll } from '../../part/sandbox/take-over.ts';
import type { RunView } from './run-view.ts';

/**
 * Makes the part of a queue in a run as production is now, and routes what could not be routed when it was accepted: for
 * subscriptions whose pause has ended, and events with more deliveries than one step may make. Stops when the run may make no
 * more deliveries.
 *
 * @returns whether production could be read
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

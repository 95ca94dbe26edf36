import { afterAll, beforeAll, expect, it } from 'vitest';
import { connect, type KubeClient } from '../../src/kube/client.ts';
import type { Sluice } from '../support/sluice.ts';
import { type Installation, install } from '../system/support/installation.ts';
import { type Observer, observe } from '../system/support/observer.ts';
import { activation, activationName, apply, integration, tenant } from '../system/support/world.ts';
import { createAll, type Wanted } from './population.ts';

/** Activations that one tenant applies at once. SCALE=1 for as many as a large one has. */
const MANY = 40_000 * Number(process.env.SCALE ?? 0.1);
const LOUD = 'loud';
const QUIET = 'quiet';

let installed: Installation;
let client: KubeClient;
let observer: Observer;
let sluice: Sluice;

beforeAll(async () => {
  installed = await install();
  client = connect({ kubeconfig: installed.cluster.kubeconfig });
  observer = observe(installed.cluster.kubeconfig);
  sluice = await installed.start({ role: 'controller' });
  await apply(
    installed.cluster,
    [LOUD, QUIET].flatMap(name => [...tenant(name), integration(name, name)]),
  );
  for (const name of [LOUD, QUIET]) await observer.until(['Integration', name, name, 'Ready', 'True/Active']);
});

afterAll(async () => {
  await observer?.close();
  await client?.close();
  await installed?.stop();
});

const waiting = () => sluice.metric('workqueue_depth', { name: 'activation' });
const reconciled = () => sluice.metric('controller_runtime_reconcile_total', { controller: 'activation' });

/** Applies one activation of the quiet tenant, and returns how long it took and what was reconciled meanwhile. */
async function applyOne(groupKey: string): Promise<{ tookMs: number; reconciles: number }> {
  const before = await reconciled();
  const beganMs = performance.now();
  await observer.apply(activation(QUIET, QUIET, groupKey));
  await observer.until(['Activation', activationName(QUIET, groupKey), QUIET, 'Effective', 'True/Routing']);
  return { tookMs: performance.now() - beganMs, reconciles: (await reconciled()) - before };
}

it(`applies the activation of a tenant while another one has applied ${MANY}`, { timeout: 600_000 }, async () => {
  const alone = await applyOne('alone');
  const wanted = Array.from(
    { length: MANY },
    (_, n): Wanted => ({
      kind: 'Activation',
      namespace: LOUD,
      name: `activation-${n}`,
      spec: { integration: LOUD, groupKey: `customer/${n}` },
    }),
  );
  await createAll(client, wanted);
  const ahead = await waiting();
  const beside = await applyOne('beside');
  console.log(
    `alone ${Math.round(alone.tookMs)} ms; behind ${ahead} waiting keys ${Math.round(beside.tookMs)} ms, ${beside.reconciles} reconciles`,
  );
  // Otherwise there was nothing to wait for.
  expect(ahead).toBeGreaterThan(MANY / 20);
  expect(await waiting()).toBeGreaterThan(0);
  expect(beside.reconciles).toBeLessThan(ahead / 2);
});

import { afterAll, beforeAll, expect, it } from 'vitest';
import { publicId, tenantId } from '../../src/core/ids/ids.ts';
import { connect, type KubeClient } from '../../src/kube/client.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import type { Sluice } from '../support/sluice.ts';
import { ownedTenant } from '../system/rest/support/facade-world.ts';
import { type Installation, install } from '../system/support/installation.ts';
import { type Observer, observe } from '../system/support/observer.ts';
import { createRestClient, type RestClient } from '../system/support/rest-client.ts';
import { activation, activationName, apply, integration } from '../system/support/world.ts';
import { createAll, type Wanted } from './population.ts';
import { AS_IN_A_CONTAINER, CONTAINER_MIB, readResident } from './process-memory.ts';

/** The number of activations that one tenant applies at once. With SCALE=1, this is the documented maximum. */
const MANY = 40_000 * Number(process.env.SCALE ?? 0.1);
const LOUD = 'loud';
const QUIET = 'quiet';

let installed: Installation;
let client: KubeClient;
let observer: Observer;
let sluice: Sluice;
let issuer: Issuer;
let owner: RestClient;

beforeAll(async () => {
  [installed, issuer] = await Promise.all([install(), startIssuer()]);
  client = connect({ kubeconfig: installed.cluster.kubeconfig });
  observer = observe(installed.cluster.kubeconfig);
  sluice = await installed.start({ role: 'controller', env: AS_IN_A_CONTAINER });
  const facade = await installed.start({ role: 'facade', env: { ...issuer.env, ...AS_IN_A_CONTAINER } });
  owner = createRestClient(facade.facadeUrl, await issuer.token({ sub: 'olga' }));
  await apply(
    installed.cluster,
    [LOUD, QUIET].flatMap(name => [...ownedTenant(issuer, name, 'olga'), integration(name, name)]),
  );
  for (const name of [LOUD, QUIET]) await observer.until(['Integration', name, name, 'Ready', 'True/Active']);
});

afterAll(async () => {
  await observer?.close();
  await client?.close();
  await installed?.stop();
  await issuer?.close();
});

const waiting = () => sluice.metric('workqueue_depth', { name: 'activation' });
const reconciled = () => sluice.metric('controller_runtime_reconcile_total', { controller: 'activation' });

/**
 * Applies one activation of the quiet tenant. Returns the time this took, and the number of reconciliations in the
 * meantime.
 */
async function applyOne(groupKey: string): Promise<{ tookMs: number; reconciles: number }> {
  const before = await reconciled();
  const beganMs = performance.now();
  await observer.apply(activation(QUIET, QUIET, groupKey));
  await observer.until(['Activation', activationName(QUIET, groupKey), QUIET, 'Effective', 'True/Routing']);
  return { tookMs: performance.now() - beganMs, reconciles: (await reconciled()) - before };
}

/** Opens and closes a group key of the quiet tenant using REST until no activation of the loud tenant is waiting. */
async function changeWhileWaiting(): Promise<{ statuses: number[]; slowestMs: number }> {
  const wanted = {
    producerTenantPublicId: tenantId(QUIET),
    groupKey: 'over-rest',
    integrationPublicId: publicId('Integration', QUIET, QUIET),
  };
  const statuses: number[] = [];
  let slowestMs = 0;
  for (let round = 0; round === 0 || (await waiting()) > 0; round++) {
    for (const method of ['POST', 'DELETE'] as const) {
      const beganMs = performance.now();
      statuses.push((await owner.call(method, '/waas/activations', wanted)).status);
      slowestMs = Math.max(slowestMs, performance.now() - beganMs);
    }
  }
  return { statuses, slowestMs };
}

it(`applies an activation of one tenant while ${MANY} activations of another tenant are waiting`, {
  timeout: 3_600_000,
}, async () => {
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
    `alone: ${Math.round(alone.tookMs)} ms; behind ${ahead} waiting keys: ${Math.round(beside.tookMs)} ms, ${beside.reconciles} reconciliations`,
  );
  // Fails if no keys were waiting, because the test would then not measure anything.
  expect(ahead).toBeGreaterThan(MANY / 20);
  expect(await waiting()).toBeGreaterThan(0);
  expect(beside.reconciles).toBeLessThan(ahead / 2);

  const { statuses, slowestMs } = await changeWhileWaiting();
  expect(await reconciled()).toBeGreaterThanOrEqual(MANY);
  console.log(`${statuses.length} changes using REST in the meantime; the slowest took ${Math.round(slowestMs)} ms`);
  // A call that takes 5 s gets a 503.
  expect(new Set(statuses)).toEqual(new Set([200, 204]));
  const { most } = await readResident(sluice.pid);
  console.log(`controller: at most ${Math.round(most)} MiB resident`);
  if (process.platform === 'linux') expect(most).toBeLessThan(CONTAINER_MIB);
});

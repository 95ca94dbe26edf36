import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FINALIZER } from '../../../src/api/well-known.ts';
import { WITH_FINALIZER } from '../../../src/kube/access/rights.ts';
import { resourceOf } from '../../../src/kube/resource.ts';
import { urlAs } from '../../support/redis/users.ts';
import { eventually } from '../support/deadline.ts';
import { list } from '../support/listed.ts';
import { makeSample } from '../support/publisher.ts';
import { PRODUCER, QUEUE, SUBSCRIPTION } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { apply, kubectl, pkg, read } from '../support/world.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const LEASE = ['lease', 'sluice-controller', '--namespace=sluice-system'];

/** The event fails, so it stays undelivered during all tests. */
const endpoint = { retrySchedule: Array.from({ length: 16 }, () => '10s') };
const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'], endpoint, controllerManager: true });

/** Runs `sluice uninstall` while the roles are running. */
function uninstall(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const all = {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    KUBECONFIG: world.cluster.kubeconfig,
    SLUICE_REDIS_URL: urlAs('uninstall', world.redis.url),
    ...env,
  };
  return new Promise<{ readonly code: number; readonly stdout: string }>(resolve => {
    execFile(join(ROOT, 'bin', 'sluice'), ['uninstall', ...args], { env: all }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout: stdout + stderr }),
    );
  });
}

/** The names of the objects with or without the finalizer. */
async function finalizers(): Promise<{ readonly held: readonly string[]; readonly free: readonly string[] }> {
  const items = await list(world.cluster, WITH_FINALIZER.map(resourceOf));
  const named = (has: boolean) =>
    items
      .filter(({ metadata }) => (metadata.finalizers ?? []).includes(FINALIZER) === has)
      .map(({ kind, metadata }) => `${kind} ${metadata.name}`);
  return { held: named(true), free: named(false) };
}

const holder = () => kubectl(world.cluster, ['get', ...LEASE, '-o', 'jsonpath={.spec.holderIdentity}']);

describe('sluice uninstall', () => {
  it('does not change the objects of another installation', async () => {
    await eventually('all finalizers', async () => (await finalizers()).free.length === 0);
    const { code, stdout } = await uninstall([], { SLUICE_INSTANCE: 'blue', SLUICE_NAMESPACE: 'blue-system' });
    expect(stdout).toContain('There is nothing to do');
    expect(stdout).toMatch(
      /installation without a name with a finalizer: \d+\. To remove these finalizers, unset SLUICE_INSTANCE/,
    );
    expect(code).toBe(0);
    expect((await finalizers()).free).toEqual([]);
  });

  it('refuses while there are undelivered events, and does not change anything', async () => {
    await apply(world.cluster, [pkg(PRODUCER, 'all', [QUEUE])]);
    await eventually('all finalizers', async () => (await finalizers()).free.length === 0);
    world.receiver.behave(() => 500);
    expect((await world.publisher.post(makeSample('late', 'key', 'late'))).status).toBe(202);
    const leader = await holder();
    const { code, stdout } = await uninstall();
    expect(code).toBe(1);
    expect(stdout).toContain(`Streams with undelivered events: 1: ${PRODUCER}/${QUEUE}\nNo changes were made`);
    expect((await finalizers()).free).toEqual([]);
    expect(await holder()).toBe(leader);
  });

  it('removes the finalizers if requested, and the running controller does not add them again', async () => {
    const { held } = await finalizers();
    const { code, stdout } = await uninstall(['--ignore-undelivered']);
    expect(stdout).toContain(`Finalizers removed: ${held.length}`);
    expect(code).toBe(0);
    expect((await finalizers()).free).toEqual(held);
    expect((await world.sluice.logLines()).map(({ msg }) => msg)).toContain('lost the Lease');
    expect(await holder()).toMatch(/^uninstall_/);
    // A leader would reconcile this change.
    await kubectl(world.cluster, ['annotate', 'workspaces.sluice.dev', PRODUCER, 'changed=true']);
    expect((await finalizers()).held).toEqual([]);
  });

  it('the finalizers are added again by a controller that is installed later, and the event is delivered', async () => {
    world.receiver.behave(() => 204);
    await world.sluice.restart();
    await eventually('all finalizers', async () => (await finalizers()).free.length === 0, { withinMs: 90_000 });
    await eventually('the event is delivered', async () => world.receiver.attempts.some(({ id }) => id === 'late'));
  });

  it('uses the statuses if Redis is not available while the leader is stopped', async () => {
    const without = { SLUICE_REDIS_URL: 'redis://127.0.0.1:1' };
    type Shown = { readonly status: { readonly delivery: { readonly backlog?: string } } };
    const shown = () => read<Shown>(world.cluster, 'subscription', SUBSCRIPTION, 'ada');
    await eventually('the backlog is empty', async () => (await shown())?.status.delivery.backlog === '0');
    await world.sluice.kill('SIGSTOP');
    const { code, stdout } = await uninstall([], without);
    expect(stdout).toMatch(/Redis cannot be read.*ECONNREFUSED/);
    expect(code).toBe(0);
  });

  it('namespaces and kinds can be deleted afterwards without a controller', async () => {
    await world.sluice.kill();
    expect((await finalizers()).held).toEqual([]);
    await kubectl(world.cluster, ['delete', '-f', join(ROOT, 'crds'), '--timeout=120s']);
    await kubectl(world.cluster, ['delete', 'namespace', PRODUCER, 'ada', '--timeout=120s']);
    expect((await uninstall()).stdout).toContain('There is nothing to do');
  });
});

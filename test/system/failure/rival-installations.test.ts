import { afterAll, beforeAll, expect, it } from 'vitest';
import { applyPermissions, kubeconfigOf } from '../../support/kubernetes/permissions.ts';
import { DOCUMENTED, type RedisServer, startRedis } from '../../support/redis/server.ts';
import type { Sluice, SluiceOptions } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { leads } from '../support/leading.ts';
import { kubectl } from '../support/world.ts';

/** The second installation checks the Lease about every 10 s, and tries to get it up to 4.4 s later. */
const PAST_ITS_TURN_MS = 20_000;
const OTHER = 'other-system';

let installed: Installation;
let otherRedis: RedisServer;
let first: Sluice;
let second: Sluice;

beforeAll(async () => {
  [installed, otherRedis] = await Promise.all([install(), startRedis({ appendonly: true, extra: DOCUMENTED })]);
  await applyPermissions(installed.cluster);
  await kubectl(installed.cluster, ['create', 'namespace', OTHER]);
});

afterAll(async () => {
  await installed?.stop();
  await otherRedis?.stop();
});

const start = (options: Partial<SluiceOptions> = {}) => installed.start({ role: 'controller', ...options });
const startOther = (options: Partial<SluiceOptions> = {}) =>
  start({ redisUrl: otherRedis.url, unready: true, ...options, env: { SLUICE_NAMESPACE: OTHER, ...options.env } });

const hasLed = async (sluice: Sluice) => (await sluice.logLines()).some(({ msg }) => msg === 'started leading');
const impaired = (sluice: Sluice) => sluice.metric('sluice_role_impaired', { reason: 'InstanceTaken' });
const leadsSoon = (sluice: Sluice) => eventually('the controller leads', () => leads(sluice));

it('the second installation without a name does not lead, and explains what to change', async () => {
  first = await start();
  await leadsSoon(first);
  second = await startOther();
  await eventually('the controller is refused', async () => (await impaired(second)) === 1);
  const [status, body] = await second.readyz();
  expect(status).toBe(503);
  expect(body).toMatch(
    /^controller: Namespace sluice-system has an installation that also has no name, and its controller \S+ holds the Lease sluice-system\/sluice-controller\. .* Set SLUICE_INSTANCE .* run kubectl delete lease sluice-controller --namespace sluice-system\.\n$/,
  );
  const logged = async () => (await second.logLines()).some(({ reason }) => reason === 'InstanceTaken');
  await eventually('the reason is logged', logged);
  expect(await kubectl(installed.cluster, ['get', 'leases', '-n', OTHER, '-o', 'name'])).toBe('');
  expect(await impaired(first)).toBe(0);
});

it('an installation with another name can lead', async () => {
  await kubectl(installed.cluster, ['create', 'namespace', 'blue-system']);
  const env = { SLUICE_INSTANCE: 'blue', SLUICE_NAMESPACE: 'blue-system' };
  const blueRedis = await startRedis({ appendonly: true, extra: DOCUMENTED });
  const blue = await start({ redisUrl: blueRedis.url, env });
  await leadsSoon(blue);
  const labels = ['get', 'leases', '-A', '--no-headers', '-o=custom-columns=:.metadata.labels'];
  expect(await kubectl(installed.cluster, labels)).toContain('sluice.dev/instance:blue');
  await blue.stop();
  await blueRedis.stop();
});

it('a replica in the same namespace takes over if the leader is killed, and the second installation continues to wait', async () => {
  const standby = await start();
  await first.kill('SIGKILL');
  await leadsSoon(standby);
  expect(await hasLed(second)).toBe(false);
  expect((await second.readyz())[0]).toBe(503);
  await second.stop();
  first = standby;
});

it('the installation continues after a restart of all its controllers, instead of the second installation', async () => {
  const waiting = await startOther();
  await eventually('the controller is refused', async () => (await impaired(waiting)) === 1);
  await first.stop();
  const reported = async () => (await waiting.readyz())[1].includes('which was stopped, used another Redis');
  await eventually('the controller reports the other Redis', reported);
  await first.restart();
  await leadsSoon(first);
  expect(await hasLed(waiting)).toBe(false);
  await waiting.stop();
});

it('an installation in another namespace with the same Redis leads after the first installation has been stopped', async () => {
  const moved = await startOther({ redisUrl: installed.redis.url });
  await eventually('the controller is refused', async () => (await impaired(moved)) === 1);
  await first.stop();
  await leadsSoon(moved);
  await eventually('the controller is ready', async () => (await moved.readyz())[0] === 200);
  await moved.kill('SIGKILL');
});

it('no other installation leads after the leader has been killed until its Lease is deleted', async () => {
  const waiting = await start({ unready: true });
  await eventually('the controller is refused', async () => (await impaired(waiting)) === 1);
  await new Promise(resolve => setTimeout(resolve, PAST_ITS_TURN_MS));
  expect(await hasLed(waiting)).toBe(false);
  const [, command = ''] = /run kubectl (.*)\.\n/.exec((await waiting.readyz())[1]) ?? [];
  await kubectl(installed.cluster, command.split(' '));
  await leadsSoon(waiting);
  await eventually('the controller is ready', async () => (await waiting.readyz())[0] === 200);
  await waiting.stop();
});

it('a controller that cannot list the Leases does not lead, and reports the missing role', async () => {
  const { cluster } = installed;
  const role = JSON.parse(await kubectl(cluster, ['get', 'clusterrole', 'sluice-controller', '-o=json'])) as {
    readonly rules: readonly { readonly resources: readonly string[] }[];
  };
  const rules = role.rules.filter(({ resources }) => !resources.includes('leases'));
  expect(rules.length).toBe(role.rules.length - 1);
  await kubectl(cluster, [
    'patch',
    'clusterrole',
    'sluice-controller',
    '--type=merge',
    '-p',
    JSON.stringify({ rules }),
  ]);
  const kubeconfig = await kubeconfigOf(cluster, 'sluice-controller');
  const limited = await start({ kubeconfig, unready: true });
  const reported = async () => (await limited.readyz())[1];
  await eventually('the controller reports this', async () =>
    (await reported()).includes('of other namespaces cannot be listed'),
  );
  await eventually('the missing permission is reported', async () =>
    /does not grant list leases\.coordination\.k8s\.io.*: bind the ClusterRole sluice-controller/.test(
      await reported(),
    ),
  );
  expect((await limited.readyz())[0]).toBe(503);
  expect(await hasLed(limited)).toBe(false);
  await applyPermissions(cluster);
  await leadsSoon(limited);
});

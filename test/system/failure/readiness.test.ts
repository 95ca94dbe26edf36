import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { AUDIENCE, startIssuer as startIdentityProvider } from '../../support/facade/issuer.ts';
import { type Issuer, startIssuer } from '../../support/issuer.ts';
import { denialsOn } from '../../support/redis/users.ts';
import type { Sluice, SluiceRole } from '../../support/sluice.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';
import { makeSample, type Publisher } from '../support/publisher.ts';
import { type Running, settle } from '../support/small-world.ts';

let installed: Installation;
let issuer: Issuer;
let folder: TemporaryFolder;
let world: Running;
let publisher: Publisher;
let ingress: Sluice;

beforeAll(async () => {
  [installed, issuer, folder] = await Promise.all([install(), startIssuer(), temporaryFolder('readiness')]);
  await writeFile(join(folder.path, 'other.key'), randomBytes(32));
  const start = (role: SluiceRole) => installed.start({ role });
  [ingress] = await Promise.all([start('ingress'), start('controller'), start('controller')]);
  world = await settle(installed, { partners: ['ada'], groupKeys: ['key'] });
  publisher = world.publisherOf(ingress);
});

afterAll(async () => {
  await world?.close();
  await installed?.stop();
  await issuer?.close();
  await folder?.remove();
});

const WRONG_KEY = /^\w+: The root key is not that of the controller: .*\(SLUICE_ROOT_KEY_FILE\)\.\n$/;

it('a dispatcher with another root key is not ready, and does not take events from dispatchers with the correct root key', async () => {
  const wrong = await installed.start({
    role: 'dispatcher',
    unready: true,
    env: { SLUICE_ROOT_KEY_FILE: join(folder.path, 'other.key') },
  });
  await eventually('the dispatcher reports this', async () => WRONG_KEY.test((await wrong.readyz())[1]));
  expect((await wrong.readyz())[0]).toBe(503);
  expect(await wrong.metric('sluice_role_impaired', { reason: 'RootKeyMismatch' })).toBe(1);
  const ids = Array.from({ length: 20 }, (_, index) => `before.${index}`);
  for (const id of ids) await publisher.publish(makeSample(id, 'key', id));
  const waiting = async () => (await wrong.metric('sluice_dispatcher_open_deliveries')) === ids.length;
  await eventually('all events are routed', waiting);
  const isOverdue = async () => (await wrong.metric('sluice_work_overdue_seconds', { index: 'parts' })) > 0;
  await eventually('the events are overdue because no process claims them', isOverdue);
  await installed.start({ role: 'dispatcher' });
  await eventually('all events are delivered', async () => world.receiver.delivered('ada').size === ids.length);
  const failures = (await wrong.logLines()).filter(({ msg }) => msg === 'work failed, tried again');
  expect(failures).toEqual([]);
  await wrong.kill();
});

it('a facade with another root key is not ready', async () => {
  const env = { ...issuer.env, SLUICE_ROOT_KEY_FILE: join(folder.path, 'other.key') };
  const facade = await installed.start({ role: 'facade', unready: true, env });
  await eventually('the facade reports this', async () => WRONG_KEY.test((await facade.readyz())[1]));
  expect((await facade.readyz())[0]).toBe(503);
  expect(await denialsOn(installed.redis)).toEqual([]);
  await installed.redis.command('ACL', 'SETUSER', 'sluice-facade', '-hgetall');
  const denied = /denies access: NOPERM .*'hgetall'.*Give user sluice-facade the permissions/;
  const isDenied = async () => denied.test((await facade.readyz())[1]);
  await eventually('the facade reports the permission that its user lacks', isDenied, { withinMs: 20_000 });
  await installed.redis.command('ACL', 'SETUSER', 'sluice-facade', '+hgetall');
  await installed.redis.command('ACL', 'LOG', 'RESET');
  await facade.kill();
});

it('a facade is not ready until it has read the keys of the identity provider, and stays ready without it', async () => {
  const provider = await startIdentityProvider();
  onTestFinished(() => provider.stop().catch(() => {}));
  await provider.stop();
  const env = { SLUICE_OIDC_ISSUERS: provider.url, SLUICE_OIDC_AUDIENCE: AUDIENCE };
  const [facade, all] = await Promise.all([
    installed.start({ role: 'facade', unready: true, env }),
    installed.start({ role: 'all', env }),
  ]);
  const fault = `facade: The keys of the identity provider cannot be read (${provider.url}: connect ECONNREFUSED 127.0.0.1:${provider.port}), so calls with its access tokens are rejected with 503. Check SLUICE_OIDC_ISSUERS and the connection to the identity provider.\n`;
  await eventually('the facade reports this', async () => (await facade.readyz())[1] === fault);
  expect((await facade.readyz())[0]).toBe(503);
  const isLogged = async () => (await facade.logLines()).some(({ reason }) => reason === 'IssuerUnavailable');
  await eventually('the facade logs this', isLogged);
  expect(await facade.metric('sluice_role_impaired', { reason: 'IssuerUnavailable' })).toBe(1);
  // The other roles in this process don't need the identity provider.
  expect(await all.readyz()).toEqual([200, `ok\n${fault}`]);
  await provider.restart();
  await eventually('the facade is ready', async () => (await facade.readyz())[1] === 'ok\n');
  await provider.stop();
  const call = { headers: { authorization: `Bearer ${await provider.sign({}, { kid: 'new' })}` } };
  expect((await fetch(`${facade.facadeUrl}/waas/accounts`, call)).status).toBe(503);
  expect((await facade.readyz())[0]).toBe(200);
  await Promise.all([facade.stop(), all.stop()]);
});

it('a standby controller with another root key is not ready', async () => {
  const env = { SLUICE_ROOT_KEY_FILE: join(folder.path, 'other.key') };
  const standby = await installed.start({ role: 'controller', unready: true, env });
  const body = /^controller: The root key is not that of the leading controller: .*\(SLUICE_ROOT_KEY_FILE\)\.\n$/;
  await eventually('the controller reports this', async () => body.test((await standby.readyz())[1]));
  expect((await standby.readyz())[0]).toBe(503);
  expect(await standby.metric('sluice_role_impaired', { reason: 'RootKeyMismatch' })).toBe(1);
  const isLogged = async () => (await standby.logLines()).some(({ reason }) => reason === 'RootKeyMismatch');
  await eventually('the controller logs this', isLogged);
  await standby.kill();
});

it('ingress stays ready without Redis, responds with 503, and continues afterwards', async () => {
  await installed.redis.kill();
  const { url } = installed.redis;
  // The message that is reported from the first reconnection attempt.
  const reported = `ok\ningress: Redis at redis://sluice-ingress@${new URL(url).host} (SLUICE_REDIS_URL) does not answer: connect ECONNREFUSED ${new URL(url).host}\n`;
  await eventually('ingress reports this', async () => (await ingress.readyz())[1] === reported);
  expect((await ingress.readyz())[0]).toBe(200);
  const away = await publisher.post(makeSample('away', 'key', 'x'));
  expect(away.status).toBe(503);
  expect(Number(away.headers['retry-after'])).toBeGreaterThan(0);
  expect((await ingress.readyz())[0]).toBe(200);
  await installed.redis.restart();
  await eventually('ingress is not impaired', async () => (await ingress.readyz())[1] === 'ok\n');
  expect((await publisher.publish(makeSample('back', 'key', 'x'))).status).toBe(202);
  await eventually('the event is delivered', async () => world.receiver.delivered('ada').has('back'));
});

import { createServer } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { type RedisOptions, type RedisServer, startRedis } from '../../support/redis/server.ts';
import { type Sluice, type SluiceOptions, startSluice } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';

const DATA_PLANE = ['ingress', 'dispatcher'] as const;

async function redisOf(options: RedisOptions = {}): Promise<RedisServer> {
  const redis = await startRedis(options);
  onTestFinished(() => redis.stop());
  return redis;
}

/** Starts a role without waiting until it is ready. */
async function start(options: Partial<SluiceOptions> & Pick<SluiceOptions, 'redisUrl'>): Promise<Sluice> {
  const sluice = await startSluice({ kubeconfig: '/nowhere', unready: true, ...options });
  onTestFinished(() => sluice.kill());
  return sluice;
}

const linesOf = async (sluice: Sluice, msg: string) => (await sluice.logLines()).filter(line => line.msg === msg);

it('roles report that Redis is not available, and start when it responds', async () => {
  const redis = await redisOf();
  await redis.kill();
  const roles = await Promise.all(DATA_PLANE.map(role => start({ role, redisUrl: redis.url })));
  for (const [index, role] of roles.entries()) {
    const reported = `${DATA_PLANE[index]}: Redis at ${redis.url} (SLUICE_REDIS_URL) does not answer: connect ECONNREFUSED`;
    await eventually('the role reports this', async () => (await role.readyz())[1].startsWith(reported));
    expect((await role.readyz())[0]).toBe(503);
    expect((await fetch(`${role.opsUrl}/healthz`)).status).toBe(200);
    expect(await role.metric('sluice_role_impaired', { reason: 'RedisUnavailable' })).toBe(1);
    await eventually('the role logs this', async () => (await linesOf(role, 'role cannot work')).length > 0);
  }
  await redis.restart();
  for (const role of roles) {
    await eventually('the role is ready', async () => (await role.readyz())[0] === 200);
    expect(await linesOf(role, 'role cannot work')).toHaveLength(1);
    expect(await role.readyz()).toEqual([200, 'ok\n']);
    expect(role.running()).toBe(true);
  }
});

it('a role that waits for Redis can be stopped in order', async () => {
  const redis = await redisOf();
  await redis.kill();
  const dispatcher = await start({ role: 'dispatcher', redisUrl: redis.url });
  await eventually('the role waits for Redis', async () => (await dispatcher.readyz())[0] === 503);
  expect(await dispatcher.stop()).toEqual({ code: 0, signal: null });
});

it('roles do not use a Redis with unsafe settings until the settings are changed', async () => {
  const redis = await redisOf({ extra: ['--maxmemory-policy', 'allkeys-lru'] });
  const dispatcher = await start({ role: 'dispatcher', redisUrl: redis.url });
  await eventually('the role reports this', async () => (await dispatcher.readyz())[1].includes('maxmemory-policy'));
  expect((await dispatcher.readyz())[0]).toBe(503);
  expect(await dispatcher.metric('sluice_role_impaired', { reason: 'RedisUnsuitable' })).toBe(1);
  await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction');
  await eventually('the role is ready', async () => (await dispatcher.readyz())[0] === 200);
});

it('a dispatcher reports that its user lacks the permission for pushes, until the user has it', async () => {
  const redis = await redisOf();
  await redis.command('ACL', 'SETUSER', 'sluice', 'on', '>secret', '~*', '&*', '+@all', '-ssubscribe');
  const redisUrl = redis.url.replace('//', '//sluice:secret@');
  const dispatcher = await start({ role: 'dispatcher', redisUrl });
  const denied = /denies access: NOPERM .*'ssubscribe'.*Give user sluice the permissions in config\/redis\/users\.acl/;
  await eventually('the role reports this', async () => denied.test((await dispatcher.readyz())[1]));
  await redis.command('ACL', 'SETUSER', 'sluice', '+ssubscribe');
  const isWorking = async () => (await dispatcher.readyz()).join() === '200,ok\n';
  await eventually('the role does not report this any more', isWorking);
});

it.each(['SLUICE_OPS_PORT', 'SLUICE_INGRESS_PORT'])(
  'a role exits if the port in %s is already in use, and reports the variable',
  async variable => {
    const redis = await redisOf();
    const holder = createServer();
    onTestFinished(() => void holder.close());
    await new Promise<void>(resolve => holder.listen(0, resolve));
    const { port } = holder.address() as { port: number };
    const ingress = await start({ role: 'ingress', redisUrl: redis.url, env: { [variable]: `${port}` } });
    await eventually('the role exits', async () => !ingress.running());
    const { readFile } = await import('node:fs/promises');
    expect(await readFile(ingress.log, 'utf8')).toContain(`${variable}: port ${port} is already in use`);
  },
);

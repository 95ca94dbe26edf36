import { Writable } from 'node:stream';
import { pino } from 'pino';
import { describe, expect, test } from 'vitest';
import { type Impairment, watchRoleHealth } from './role-health.ts';

const REDIS: Impairment = { reason: 'RedisUnavailable', cause: 'dependency', message: 'SLUICE_REDIS_URL: no answer' };
const KEY: Impairment = { reason: 'RootKeyMismatch', cause: 'settings', message: 'SLUICE_ROOT_KEY_FILE: another key' };
const PART: Impairment = { reason: 'IssuerUnavailable', cause: 'partial', message: 'one of two issuers' };

function start(base: { readonly role: string } | null = null) {
  const raw: string[] = [];
  const lines: { level: number; msg: string; reason: string }[] = [];
  const output = new Writable({
    write(chunk, _encoding, done) {
      raw.push(String(chunk));
      lines.push(JSON.parse(String(chunk)));
      done();
    },
  });
  const test = { impairments: [] as Impairment[], nowMs: 0, tick: () => {}, lines, raw };
  const health = watchRoleHealth({
    role: 'dispatcher',
    check: () => test.impairments,
    log: pino({ base }, output),
    nowMs: () => test.nowMs,
    repeat: run => {
      test.tick = run;
      return () => {};
    },
  });
  return Object.assign(test, { health });
}

describe('readiness', () => {
  test('a role that has never worked is not ready', () => {
    const role = start();
    role.impairments = [REDIS];
    expect(role.health.state()).toEqual({ ready: false, impairments: [REDIS] });
  });

  test('a role that has worked remains ready while a shared dependency is unavailable', () => {
    const role = start();
    expect(role.health.state().ready).toBe(true);
    role.impairments = [REDIS];
    expect(role.health.state()).toEqual({ ready: true, impairments: [REDIS] });
  });

  test('a role that is able to do a part of its work is ready', () => {
    const role = start();
    role.impairments = [PART];
    expect(role.health.state()).toEqual({ ready: true, impairments: [PART] });
    role.impairments = [REDIS, PART];
    expect(role.health.state().ready).toBe(true);
  });

  test('a role is never ready while its own settings are wrong', () => {
    const role = start();
    role.health.state();
    role.impairments = [REDIS, KEY];
    expect(role.health.state().ready).toBe(false);
  });
});

describe('the log', () => {
  function pass(role: ReturnType<typeof start>, seconds: number): void {
    for (let second = 0; second < seconds; second++) {
      role.nowMs += 1_000;
      role.tick();
    }
  }

  test('contains a line when an impairment has lasted 5 s, one per minute while it lasts, and one when it ends', () => {
    const role = start();
    role.impairments = [REDIS];
    pass(role, 5);
    expect(role.lines).toEqual([]);
    pass(role, 122);
    role.impairments = [];
    pass(role, 2);
    expect(role.lines.map(({ level, msg, reason }) => [level, msg, reason])).toEqual([
      [50, 'role cannot work', 'RedisUnavailable'],
      [50, 'role cannot work', 'RedisUnavailable'],
      [50, 'role cannot work', 'RedisUnavailable'],
      [30, 'role is able to work again', 'RedisUnavailable'],
    ]);
  });

  test.each([[null], [{ role: 'dispatcher' }]])('contains the role once in each line (base %j)', base => {
    const role = start(base);
    role.impairments = [REDIS];
    pass(role, 8);
    role.impairments = [];
    pass(role, 1);
    expect(role.raw.map(line => line.match(/"role":"dispatcher"/g)?.length)).toEqual([1, 1]);
  });

  test('does not contain a line for an ordinary start', () => {
    const role = start();
    role.impairments = [REDIS];
    pass(role, 4);
    role.impairments = [];
    pass(role, 10);
    expect(role.lines).toEqual([]);
  });

  test('contains what to change', () => {
    const role = start();
    role.impairments = [KEY];
    pass(role, 7);
    expect(role.lines[0]).toMatchObject({ role: 'dispatcher', detail: KEY.message });
  });
});

import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readOwnMemory } from '../../scale/process-memory.ts';
import { type Issuer, startIssuer } from '../../support/issuer.ts';
import type { Sluice, SluiceRole } from '../../support/sluice.ts';
import { type Installation, install } from '../support/installation.ts';

/** The memory of idle roles, in bytes. The code of Node, which is shared, requires another 50 MB once. */
const ROLES_AT_MOST = 300e6;
const ALL_AT_MOST = 150e6;
/** The time until a started role is idle, in milliseconds. */
const SETTLED_MS = 5_000;

const ROLES: readonly SluiceRole[] = ['controller', 'facade', 'ingress', 'dispatcher'];

let issuer: Issuer;
let installed: Installation;

beforeAll(async () => {
  [issuer, installed] = await Promise.all([startIssuer(), install()]);
});

afterAll(async () => {
  await installed?.stop();
  await issuer?.close();
});

/** Starts a process for each role. The first start of a version is not measured because it compiles the sources. */
async function measure(roles: readonly SluiceRole[]): Promise<Record<string, number>> {
  const { env } = issuer;
  const processes: Sluice[] = await Promise.all(roles.map(role => installed.start({ role, env })));
  await Promise.all(processes.map(each => each.restart()));
  await delay(SETTLED_MS);
  const used = await Promise.all(processes.map(async ({ pid }, i) => [roles[i], await readOwnMemory(pid)] as const));
  await Promise.all(processes.map(each => each.stop()));
  return Object.fromEntries(used);
}

describe.runIf(process.platform === 'linux')('memory while idle', () => {
  test('all roles together need at most 300 MB', async () => {
    const used = await measure(ROLES);
    const sum = Object.values(used).reduce((total, bytes) => total + bytes, 0);
    expect(sum, JSON.stringify(used)).toBeLessThan(ROLES_AT_MOST);
    expect(Object.keys(used)).toEqual(ROLES);
  });

  test('all roles in one process need at most 150 MB', async () => {
    const used = await measure(['all']);
    expect(used.all, JSON.stringify(used)).toBeLessThan(ALL_AT_MOST);
  });
});

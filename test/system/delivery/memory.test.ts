import { afterAll, beforeAll, describe, test } from 'vitest';
import { readOwnMemory } from '../../scale/process-memory.ts';
import { type Issuer, startIssuer } from '../../support/issuer.ts';
import type { Sluice, SluiceRole } from '../../support/sluice.ts';
import { eventually } from '../support/deadline.ts';
import { type Installation, install } from '../support/installation.ts';

/** The memory of idle roles, in bytes. The code of Node, which is shared, requires another 50 MB once. */
const ROLES_AT_MOST = 280e6;
const ALL_AT_MOST = 110e6;

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

/**
 * Starts a process for each role, and waits until they use less memory, which takes a few seconds after the start. The
 * first start of a version is not measured because it compiles the sources.
 */
async function expectAtMost(maxBytes: number, roles: readonly SluiceRole[]): Promise<void> {
  const { env } = issuer;
  const processes: Sluice[] = await Promise.all(roles.map(role => installed.start({ role, env })));
  await Promise.all(processes.map(each => each.restart()));
  const used = () => Promise.all(processes.map(({ pid }) => readOwnMemory(pid)));
  const isLow = async () => {
    const bytes = await used();
    return bytes.length === roles.length && bytes.reduce((sum, each) => sum + each, 0) < maxBytes;
  };
  await eventually('the processes are small', isLow, { everyMs: 1_000 }).catch(async cause => {
    throw new Error(`${roles.join(', ')} use ${(await used()).join(', ')} bytes`, { cause });
  });
  await Promise.all(processes.map(each => each.stop()));
}

describe.runIf(process.platform === 'linux')('memory while idle', () => {
  test('all roles together need at most 280 MB', async () => {
    await expectAtMost(ROLES_AT_MOST, ROLES);
  });

  test('all roles in one process need at most 110 MB', async () => {
    await expectAtMost(ALL_AT_MOST, ['all']);
  });
});

import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../support/free-port.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { INGRESS_KEY, PRODUCER, QUEUE } from '../support/small-world.ts';
import { useSmallWorld } from '../support/use-small-world.ts';
import { activation, apply, kubectl, waitForAll } from '../support/world.ts';

const COMMAND = join(import.meta.dirname, '..', '..', '..', 'bin', 'sluice');

const world = useSmallWorld({ partners: ['ada'], groupKeys: ['key'] });
let folder: TemporaryFolder;

beforeAll(async () => {
  folder = await temporaryFolder('verify');
  await writeFile(join(folder.path, 'right'), `${INGRESS_KEY}\n`);
  await writeFile(join(folder.path, 'wrong'), 'another key');
});
afterAll(() => folder.remove());

function verify({ key = 'right', url = world.sluice.ingressUrl, timeout = 5 } = {}) {
  const of = [`--url=${url}`, `--workspace=${PRODUCER}`, `--stream=${QUEUE}`, `--key-file=${join(folder.path, key)}`];
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] };
  return new Promise<{ readonly code: number; readonly output: string }>(resolve => {
    execFile(COMMAND, ['verify', ...of, `--timeout=${timeout}`], { env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    );
  });
}

describe('sluice verify', () => {
  it('fails with a reason while the gate is closed', async () => {
    const { code, output } = await verify();
    expect(output).toMatch(
      /^No event was delivered within 5 seconds\. The event was accepted, but not delivered: .*verify/,
    );
    expect(code).toBe(1);
  });

  it('fails with another key, and if there is no response', async () => {
    expect(await verify({ key: 'wrong', timeout: 1 })).toMatchObject({
      code: 1,
      output: expect.stringContaining('Ingress responds with 401'),
    });
    expect(await verify({ url: `http://127.0.0.1:${await freePort()}`, timeout: 1 })).toMatchObject({
      code: 1,
      output: expect.stringContaining('Ingress cannot be reached: connect ECONNREFUSED'),
    });
  });

  it('succeeds once an event was delivered in the sandbox, without calling the endpoint', async () => {
    await apply(world.cluster, [activation(PRODUCER, 'ada', 'verify')]);
    await waitForAll(world.cluster, 'activation', PRODUCER, 'Effective');
    const { code, output } = await verify({ timeout: 60 });
    expect(output).toBe(
      `An event of ${PRODUCER}/${QUEUE} was accepted by ${world.sluice.ingressUrl} and delivered in the sandbox.\n`,
    );
    expect(code).toBe(0);
    expect(world.receiver.attempts).toEqual([]);
    await kubectl(world.cluster, ['delete', 'activations.sluice.dev', '--all', '-n', PRODUCER]);
  });
});

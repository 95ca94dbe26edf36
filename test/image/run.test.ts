import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { waitUntilReady } from '../support/child-process.ts';
import { freePorts } from '../support/free-port.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { missingLines } from '../support/tour/readme.ts';
import { readCommands } from './builds.ts';
import {
  type Container,
  findIsolation,
  type Isolation,
  KUBECONFIG,
  prepareContainer,
  ROOT_KEY,
  runToEnd,
  startContainer,
} from './container.ts';
import { describeTree, unpackLayers } from './files.ts';
import { describeImage, openLayout, readImages } from './image.ts';

/** The user of the image, and a user that does not exist in the image. OpenShift assigns such users. */
const USERS = ['65532:65532', '1234567890:0'];

/** The commands of docs/image.md that are not run, with the reason. */
const SKIPPED: readonly { readonly commands: RegExp; readonly because: string }[] = [
  { commands: /^make image$/, because: 'the set-up has run it' },
  { commands: /--update-debian$/, because: 'it locks what Debian has today' },
  { commands: /^(skopeo|helm) /, because: 'push.test.ts runs them' },
  { commands: /^oras /, because: 'it is no package of Debian' },
  { commands: /^tar .* \| ctr /, because: 'there is no containerd' },
  { commands: /^(podman|docker) /, because: 'there is no container engine' },
];

const READY_WITHIN_MS = 120_000;

const isolation = process.arch === 'x64' ? findIsolation() : undefined;
const because = process.arch === 'x64' ? 'changing the root folder takes root' : 'this machine is not amd64';

describeImage(([one]) => {
  test('the commands in docs/image.md print the documented output', async () => {
    const examples = await readCommands();
    expect(missingLines(examples[0]?.output ?? [], one.output)).toEqual([]);
    const runnable = examples.filter(example => !SKIPPED.some(each => each.commands.test(example.commands.trim())));
    expect(runnable.length).toBeGreaterThan(0);
    for (const { commands, output } of runnable) {
      const { status, stdout } = spawnSync('sh', ['-ec', commands], { cwd: one.folder, encoding: 'utf8' });
      expect([commands, status, missingLines(output, stdout)]).toEqual([commands, 0, []]);
    }
  });

  const title = isolation === undefined ? `is NOT RUN: ${because}` : `runs (${isolation})`;
  describe.skipIf(isolation === undefined)(`${title}`, () => {
    let folder: TemporaryFolder;
    let container: Container;
    let redis: RedisServer;

    beforeAll(async () => {
      folder = await temporaryFolder('image-run');
      const [amd64] = readImages(openLayout(one));
      const root = join(folder.path, 'root');
      await mkdir(root);
      unpackLayers(amd64?.layers ?? [], root);
      await prepareContainer(root);
      const { Entrypoint: entrypoint = [], Env: env = [] } = amd64?.config.config ?? {};
      container = { root, isolation: isolation as Isolation, entrypoint, env };
      redis = await startRedis({ appendonly: true });
    });
    afterAll(async () => {
      await redis.stop();
      await folder.remove();
    });

    /** Starts a role and waits until `/readyz` satisfies the condition. */
    async function start(role: string, user: string, isThere: (status: number, body: string) => boolean) {
      const [ops = 0, ingress = 0, facade = 0] = await freePorts(3);
      const running = startContainer(container, {
        args: [role],
        user,
        log: join(folder.path, `${role}.log`),
        env: {
          KUBECONFIG,
          SLUICE_ROOT_KEY_FILE: ROOT_KEY,
          SLUICE_REDIS_URL: redis.url,
          SLUICE_OPS_PORT: `${ops}`,
          SLUICE_INGRESS_PORT: `${ingress}`,
          SLUICE_FACADE_PORT: `${facade}`,
          SLUICE_SHUTDOWN_DELAY_SECONDS: '0',
          // Optional modules are loaded, too.
          SLUICE_OIDC_ISSUERS: 'https://127.0.0.1:1',
          SLUICE_OIDC_AUDIENCE: 'sluice',
          SLUICE_SMTP_URL: 'smtp://127.0.0.1:1',
          OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1',
        },
      });
      onTestFinished(() => running.stop());
      const look = async () => {
        const answer = await fetch(`http://127.0.0.1:${ops}/readyz`);
        return isThere(answer.status, await answer.text());
      };
      await waitUntilReady(running, look, { name: `${role} in the image`, deadlineMs: READY_WITHIN_MS });
      return { running, ingress, facade };
    }

    test.each(USERS)('prints the roles with --help and the version with --version as %s', user => {
      expect(runToEnd(container, user, ['--version'])).toEqual({
        status: 0,
        stdout: `${packageJson.version}\n`,
        stderr: '',
      });
      const help = runToEnd(container, user, ['--help']);
      expect([help.status, help.stderr]).toEqual([0, '']);
      expect(help.stdout).toMatch(/^Usage: sluice <role or command>/);
    });

    test.each(USERS)('becomes ready as %s, does not write any files, and exits with 0 after SIGTERM', async user => {
      const before = describeTree(join(container.root, 'app'));
      const { running } = await start('dispatcher', user, status => status === 200);
      const status = readFileSync(`/proc/${running.programPid()}/status`, 'utf8');
      expect(status).toMatch(new RegExp(`^Uid:\t${user.split(':')[0]}\t`, 'm'));
      expect(status).toMatch(/^CapEff:\t0+$/m);
      if (isolation === 'namespaces') expect(status).toMatch(/^NSpid:\t\d+\t1$/m);
      expect(await running.terminate()).toEqual({ code: 0, signal: null });
      expect(describeTree(join(container.root, 'app'))).toEqual(before);
    });

    test('runs the controller with its Node options in the same process', async () => {
      const { running } = await start('controller', '65532:65532', (status, body) => status === 503 && body !== '');
      const command = readFileSync(`/proc/${running.programPid()}/cmdline`, 'utf8').split('\0');
      expect(command).toEqual(expect.arrayContaining(['/usr/bin/node', '--max-semi-space-size=4', 'controller']));
      expect(await running.terminate()).toEqual({ code: 0, signal: null });
    });

    test('loads all modules that the roles may need, and serves the API reference', async () => {
      const { running, ingress, facade } = await start('all', '1234567890:0', (_, body) =>
        body.includes('facade: The caches of '),
      );
      const read = async (path: string, port = facade) => {
        const answer = await fetch(new URL(path, `http://127.0.0.1:${port}`));
        expect([path, answer.status]).toEqual([path, 200]);
        return answer.text();
      };
      const files = [...(await read('/docs/')).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, file = '']) => file);
      expect(files.length).toBeGreaterThan(3);
      for (const file of files) expect(await read(new URL(file, 'http://x/docs/').pathname)).not.toBe('');
      expect(JSON.parse(await read('/openapi.json'))).toMatchObject({ info: { version: packageJson.version } });
      expect(await read('/openapi.json', ingress)).toContain('Sluice ingress');
      expect(await running.terminate()).toEqual({ code: 0, signal: null });
    });

    test("can use Debian's certificate authorities in addition to those of Node", () => {
      const script = 'console.log(tls.getCACertificates("system").length)';
      const { stdout } = runToEnd({ ...container, entrypoint: ['/usr/bin/node', '-e'] }, '65532:65532', [script]);
      expect(Number(stdout)).toBeGreaterThan(100);
    });

    test('has a home folder for a user without a name', () => {
      const node = { ...container, entrypoint: ['/usr/bin/node', '-p'] };
      expect(runToEnd(node, '1234567890:0', ['os.homedir()']).stdout).toBe('/home/nonroot\n');
    });
  });
});

import { chmodSync, readFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readElf } from '../../tools/image/debian/elf.ts';
import { waitUntilReady } from '../support/child-process.ts';
import { freePort } from '../support/free-port.ts';
import { redisCommand } from '../support/redis/server.ts';
import { type Container, findIsolation, type Isolation, runToEnd, startContainer } from './container.ts';
import { describeTree, findPackages, listFiles, listLayer } from './files.ts';
import { type Architecture, describeImage, useImages } from './image.ts';

const BUDGET_BYTES = 10_000_000;
const READY_WITHIN_MS = 120_000;
const LIBRARIES = { amd64: 'x86_64-linux-gnu', arm64: 'aarch64-linux-gnu' } as const;
const ARCHITECTURES = Object.keys(LIBRARIES) as Architecture[];

const isolation = process.arch === 'x64' ? findIsolation() : undefined;
const because = process.arch === 'x64' ? 'changing the root folder takes root' : 'this machine is not amd64';

describeImage(builds => {
  describe('of Redis', () => {
    const [one] = builds;
    const { rootOf, imageOf, folder } = useImages(builds, 'redis-image');

    test.each(ARCHITECTURES)('contains how to run it, and stays within its size limit on %s', architecture => {
      const { manifest, config } = imageOf(architecture);
      expect(config.config).toMatchObject({
        User: '65532:65532',
        Entrypoint: ['/usr/bin/redis-server'],
        ExposedPorts: { '6379/tcp': {} },
      });
      expect(manifest.layers.reduce((sum, { size }) => sum + size, 0)).toBeLessThan(BUDGET_BYTES);
    });

    test.each(ARCHITECTURES)('is owned by root, and contains no program except for Redis on %s', architecture => {
      const entries = imageOf(architecture).layers.flatMap(listLayer);
      const wrong = entries.filter(
        ({ mode, owner, time }) =>
          owner !== '0/0' || time !== '1970-01-01 00:00:00' || !/^(-rw-r--r--|[d-]rwxr-xr-x|lrwxrwxrwx)$/.test(mode),
      );
      expect(wrong).toEqual([]);
      const programs = entries.filter(({ mode, path }) => /^[-l]rwx/.test(mode) && /bin\/[^/]+$/.test(path));
      expect(programs.map(({ path }) => path)).toEqual(['usr/bin/redis-check-rdb', 'usr/bin/redis-server']);
    });

    test.each(ARCHITECTURES)('has exactly the libraries that Redis loads on %s', architecture => {
      const root = rootOf(architecture);
      const binaries = listFiles(root)
        .map(path => ({ path, file: readFileSync(join(root, path)) }))
        .filter(({ file }) => file.toString('latin1', 0, 4) === '\x7fELF');
      const names = new Set(binaries.flatMap(({ file }) => readElf(file).needed));
      const present = describeTree(root).map(line => line.split(' ')[0] ?? '');
      for (const name of names) {
        const paths = ['lib', 'usr/lib'].map(each => join(each, LIBRARIES[architecture], name));
        expect(
          present.some(path => paths.includes(path)),
          name,
        ).toBe(true);
      }
      expect(binaries).toHaveLength(names.size + 1);
      expect(new Set(binaries.map(({ file }) => readElf(file).machine)).size).toBe(1);
    });

    test.each(ARCHITECTURES)('has an SBOM that lists exactly its packages and their licenses on %s', architecture => {
      const text = readFileSync(join(one.folder, 'dist', 'redis-image-sbom', `linux-${architecture}.cdx.json`), 'utf8');
      const { components } = JSON.parse(text) as { components: { name: string; purl: string }[] };
      const found = findPackages(rootOf(architecture), architecture);
      expect(found.length).toBeGreaterThan(10);
      expect(components.map(({ purl }) => purl).toSorted()).toEqual(found);
      for (const { name } of components) {
        // Some of these folders are links to the folder of another package.
        const path = join(rootOf(architecture), 'usr/share/doc', name, 'copyright');
        expect(readFileSync(path, 'utf8').length, name).toBeGreaterThan(0);
      }
    });

    const title = isolation === undefined ? `is NOT RUN: ${because}` : `runs (${isolation})`;
    describe.skipIf(isolation === undefined)(`${title}`, () => {
      let container: Container;

      beforeAll(async () => {
        const root = rootOf('amd64');
        await mkdir(join(root, 'proc'));
        if (isolation === 'chroot') chmodSync(join(root, 'data'), 0o777);
        const { Entrypoint: entrypoint, Env: env } = imageOf('amd64').config.config;
        container = { root, isolation: isolation as Isolation, entrypoint, env, volume: '/data' };
      });

      test.each(['65532:65532', '1234567890:0'])('stores data as %s, and exits with 0 after SIGTERM', async user => {
        const port = await freePort();
        const settings = ['--dir', '/data', '--appendonly', 'yes', '--appendfsync', 'always'];
        const running = startContainer(container, {
          args: [...settings, '--port', `${port}`, '--bind', '127.0.0.1'],
          user,
          log: join(folder(), `redis-${user}.log`),
          env: {},
        });
        onTestFinished(() => running.stop());
        const isReady = async () => (await redisCommand(port, 'PING')) === 'PONG';
        await waitUntilReady(running, isReady, { name: 'redis-server', deadlineMs: READY_WITHIN_MS });
        expect(await redisCommand(port, 'SET', 'key', 'value')).toBe('OK');
        expect(String(await redisCommand(port, 'INFO', 'persistence'))).toMatch(/aof_last_write_status:ok/);
        const status = readFileSync(`/proc/${running.programPid()}/status`, 'utf8');
        expect(status).toMatch(new RegExp(`^Uid:\t${user.split(':')[0]}\t`, 'm'));
        expect(status).toMatch(/^CapEff:\t0+$/m);
        expect(await running.terminate()).toEqual({ code: 0, signal: null });
      });

      test('has no shell', () => {
        const version = runToEnd(container, '65532:65532', ['--version']);
        expect([version.status, version.stdout]).toEqual([0, expect.stringMatching(/^Redis server v=7\./)]);
        const shell = { ...container, entrypoint: ['/bin/sh'] };
        expect(runToEnd(shell, '65532:65532', ['-c', 'true']).status).not.toBe(0);
      });
    });
  });
});

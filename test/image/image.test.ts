import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { readElf } from '../../tools/image/debian/elf.ts';
import { type Build, ROOT } from './builds.ts';
import { describeTree, findPackages, listFiles, listLayer } from './files.ts';
import { type Architecture, describeImage, useImages } from './image.ts';
import type { Manifest } from './oci-layout.ts';

const BUDGET_BYTES = 55_000_000;
const SBOM = 'application/vnd.cyclonedx+json';

/** The differences between the platforms. Does not use the table of the build. */
const EXPECTED = {
  amd64: { machine: 62, linker: 'lib/x86_64-linux-gnu/ld-linux-x86-64.so.2', libc: 'lib/x86_64-linux-gnu/libc.so.6' },
  arm64: {
    machine: 183,
    linker: 'lib/aarch64-linux-gnu/ld-linux-aarch64.so.1',
    libc: 'lib/aarch64-linux-gnu/libc.so.6',
  },
} as const;

const ARCHITECTURES = Object.keys(EXPECTED) as Architecture[];

describeImage(builds => {
  const [one] = builds;
  const { rootOf, imageOf, layout } = useImages(builds);

  test.each(ARCHITECTURES)(
    'stays within its size limit on %s, and a release replaces less than 3.5 MB',
    architecture => {
      const sizes = imageOf(architecture).manifest.layers.map(({ size }) => size);
      expect(sizes).toHaveLength(2);
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(BUDGET_BYTES);
      expect(sizes.at(-1)).toBeLessThan(3_500_000);
      expect(imageOf('amd64').layers.slice(1)).toEqual(imageOf('arm64').layers.slice(1));
    },
  );

  test('contains its labels and how to run it', () => {
    for (const { config } of ARCHITECTURES.map(architecture => imageOf(architecture).config)) {
      expect(config).toMatchObject({ User: '65532:65532', Entrypoint: ['/usr/bin/node', '/app/src/sluice.js'] });
      expect(config.Labels).toEqual({
        'org.opencontainers.image.title': 'Sluice',
        'org.opencontainers.image.description': packageJson.description,
        'org.opencontainers.image.version': packageJson.version,
        'org.opencontainers.image.licenses': 'Apache-2.0',
        'org.opencontainers.image.created': '2023-11-14T22:13:20Z',
      });
    }
  });

  test.each(ARCHITECTURES)('is owned by root and not writable by others on %s', architecture => {
    for (const layer of imageOf(architecture).layers) {
      const entries = listLayer(layer);
      expect(entries.length).toBeGreaterThan(20);
      const wrong = entries.filter(
        ({ mode, owner, time }) =>
          owner !== '0/0' || time !== '1970-01-01 00:00:00' || !/^(-rw-r--r--|[d-]rwxr-xr-x|lrwxrwxrwx)$/.test(mode),
      );
      expect(wrong).toEqual([]);
    }
  });

  test.each(ARCHITECTURES)('contains no program except for Node on %s', architecture => {
    const { linker, libc } = EXPECTED[architecture];
    const executable = imageOf(architecture)
      .layers.flatMap(listLayer)
      .filter(({ mode }) => mode.startsWith('-') && mode.includes('x'))
      .map(({ path }) => path);
    // The linker and libc are executable, but cannot run programs that do not exist.
    expect(executable).toEqual([linker, libc, 'usr/bin/node']);
  });

  test.each(ARCHITECTURES)('has a name for its user on %s', architecture => {
    const lines = readFileSync(join(rootOf(architecture), 'etc', 'passwd'), 'utf8').split('\n');
    expect(lines).toContain('nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin');
    expect(existsSync(join(rootOf(architecture), 'home', 'nonroot'))).toBe(true);
  });

  test.each(ARCHITECTURES)('has exactly the libraries that Node loads on %s', architecture => {
    const root = rootOf(architecture);
    const binaries = listFiles(root)
      .map(path => ({ path, file: readFileSync(join(root, path)) }))
      .filter(({ file }) => file.toString('latin1', 0, 4) === '\x7fELF');
    for (const { path, file } of binaries) {
      expect([path, file[4], file.readUInt16LE(18)]).toEqual([path, 2, EXPECTED[architecture].machine]);
    }
    const node = binaries.find(({ path }) => path === 'usr/bin/node');
    const interpreter = readElf(node?.file ?? Buffer.alloc(0)).interpreter ?? '';
    expect(existsSync(join(root, interpreter))).toBe(true);
    const names = new Set(binaries.flatMap(({ file }) => readElf(file).needed));
    const folders = ['lib', 'usr/lib'].map(each => join(root, each, EXPECTED[architecture].libc.split('/')[1] ?? ''));
    for (const name of names)
      expect(
        folders.some(each => existsSync(join(each, name))),
        name,
      ).toBe(true);
    expect(binaries).toHaveLength(names.size + 1);
  });

  test('has the bundle, the scripts for Redis, licenses, and the pages of /waas/docs', () => {
    const files = listFiles(join(rootOf('amd64'), 'app'));
    const scripts = listFiles(join(ROOT, 'src')).filter(path => path.endsWith('.lua'));
    const expected = ['LICENSE', 'src/sluice.js', ...scripts.map(path => `src/${path}`)];
    expect(expected.filter(path => !files.includes(path))).toEqual([]);
    const others = files.filter(path => !expected.includes(path) && !/^src\/[\w-]+-[\w-]{8}\.js$/.test(path));
    const inPackage = /^node_modules\/(@[^/]+\/)?[^/]+\/(node_modules\/(@[^/]+\/)?[^/]+\/)*(.*)$/;
    const strange = others.filter(path => {
      const file = inPackage.exec(path)?.[4] ?? '';
      return file !== 'package.json' && !/(^|\/)(authors|copying|licen[cs]e|notice)[^/]*$/i.test(file);
    });
    expect(strange.filter(path => !path.startsWith('node_modules/@fastify/swagger-ui/static/'))).toEqual([]);
    expect(strange).toContain('node_modules/@fastify/swagger-ui/static/swagger-ui.css');
  });

  test.each(ARCHITECTURES)('contains the licenses of its packages on %s', architecture => {
    const root = rootOf(architecture);
    for (const name of ['base-files', 'ca-certificates', 'gcc-12-base', 'libc6', 'libgcc-s1', 'libstdc++6']) {
      expect(existsSync(join(root, 'usr/share/doc', name, 'copyright')), name).toBe(true);
    }
    for (const path of ['app/LICENSE', 'usr/share/doc/node/LICENSE', 'app/node_modules/zod/LICENSE']) {
      expect(existsSync(join(root, path)), path).toBe(true);
    }
  });

  test.each(ARCHITECTURES)('has an SBOM that lists exactly its packages on %s', architecture => {
    const text = readFileSync(join(one.folder, 'dist', 'image-sbom', `linux-${architecture}.cdx.json`), 'utf8');
    const sbom = JSON.parse(text) as {
      bomFormat: string;
      components: { name: string; version: string; purl: string }[];
    };
    const { version } = JSON.parse(readFileSync(join(ROOT, 'test/support/node/package.json'), 'utf8')) as Build & {
      version: string;
    };
    const node = `pkg:npm/node-linux-${architecture === 'amd64' ? 'x64' : architecture}@${version}`;
    const found = findPackages(rootOf(architecture), architecture);
    expect(sbom.bomFormat).toBe('CycloneDX');
    expect(found.length).toBeGreaterThan(100);
    expect(sbom.components.map(({ purl }) => purl).toSorted()).toEqual([...found, node].toSorted());

    const digest = layout()
      .platforms()
      .find(({ platform }) => platform?.architecture === architecture)?.digest;
    const attached = layout()
      .entries.filter(({ artifactType }) => artifactType === SBOM)
      .map(descriptor => layout().readJson<Manifest>(descriptor))
      .find(({ subject }) => subject?.digest === digest);
    expect(attached?.layers.map(layer => [layer.mediaType, layout().read(layer).toString()])).toEqual([[SBOM, text]]);
  });

  test('matches the Dockerfile', () => {
    const lines = readFileSync(join(ROOT, 'tools/image/Dockerfile'), 'utf8').split('\n');
    const { config } = imageOf('amd64').config;
    expect(lines.filter(line => line !== '' && !line.startsWith('#'))).toEqual([
      'FROM scratch',
      'ARG TARGETARCH',
      'COPY linux-${TARGETARCH}/ /',
      `ENV ${config.Env.join(' ')}`,
      `EXPOSE ${Object.keys(config.ExposedPorts)
        .map(port => port.replace('/tcp', ''))
        .join(' ')}`,
      `USER ${config.User}`,
      `ENTRYPOINT ${JSON.stringify(config.Entrypoint).replaceAll(',', ', ')}`,
      `CMD ${JSON.stringify(config.Cmd)}`,
    ]);
    for (const architecture of ARCHITECTURES) {
      const copied = join(one.folder, 'dist', 'image-root', `linux-${architecture}`);
      expect(describeTree(copied)).toEqual(describeTree(rootOf(architecture)));
    }
  });
});

import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { buildStaticImage, type ImportedImage } from '../support/node-cluster/images.ts';
import { type Node, startNode } from '../support/node-cluster/node.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  IMAGE,
  NAMESPACE,
  PORT,
  podWithVolume,
  privilegedPod,
  RESTRICTED_NAMESPACE,
  restrictedPod,
  SERVICE,
  VOLUME_CLAIM,
} from './pods.ts';
import { startRegistry } from './registry.ts';
import { NO_TRACES, readHostSettings, readTraces } from './traces.ts';

const run = promisify(execFile);

const refusal = nodeRefusal();
if (refusal !== undefined) process.stderr.write(`\nSKIPPED: the tests of a real node, because ${refusal}\n\n`);

describe.skipIf(refusal !== undefined)('a node', () => {
  const uid = randomInt(10_000, 60_000);
  let before: Awaited<ReturnType<typeof readHostSettings>>;
  let node: Node;
  let imported: ImportedImage[];

  async function kubectl(args: readonly string[], object?: unknown): Promise<string> {
    const options = object === undefined ? {} : { stdin: JSON.stringify(object) };
    const { stdout, stderr, code } = await node.kubectl(args, options);
    expect(stderr, `kubectl ${args.join(' ')}`).toBe('');
    expect(code).toBe(0);
    return stdout;
  }

  const apply = (object: unknown) => kubectl(['apply', '-f', '-'], object);

  /** Runs a Pod that sends a request to an address. @returns the output of the Pod */
  function fetchFromPod(name: string, host: string, image: string = IMAGE): Promise<string> {
    return runPod(restrictedPod({ name, args: ['fetch', host, '80'], uid, image }));
  }

  async function runPod(pod: { readonly metadata: { readonly name: string } }): Promise<string> {
    const { name } = pod.metadata;
    await apply(pod);
    const ended = '--for=jsonpath={.status.containerStatuses[0].state.terminated.reason}';
    const { code } = await node.kubectl(['wait', ended, `pod/${name}`, '-n', NAMESPACE, '--timeout=60s']);
    expect(code, code === 0 ? '' : await kubectl(['describe', 'pod', name, '-n', NAMESPACE])).toBe(0);
    return kubectl(['logs', name, '-n', NAMESPACE]);
  }

  beforeAll(async () => {
    before = await readHostSettings();
    node = await startNode();
    const folder = await temporaryFolder('greeter');
    const source = join(import.meta.dirname, 'greeter.c');
    const archive = await buildStaticImage({ source, reference: IMAGE }, folder.path);
    imported = await node.importImage(archive);
    await folder.remove();
    await apply(RESTRICTED_NAMESPACE);
    await kubectl(['wait', '--for=create', 'serviceaccount/default', '-n', NAMESPACE, '--timeout=60s']);
    await apply(SERVICE);
  });

  afterAll(() => node.stop());

  test('runs a restricted Pod with a random user and a read-only root file system until it becomes Ready', async () => {
    await apply(restrictedPod({ name: 'greeter', args: ['serve', String(PORT)], uid }));
    await kubectl(['wait', '--for=condition=Ready', 'pod/greeter', '-n', NAMESPACE, '--timeout=60s']);
    const reported = await kubectl(['logs', 'greeter', '-n', NAMESPACE]);
    expect(reported).toBe(`uid ${uid}, root file system: Read-only file system\n`);
  });

  test('refuses a Pod that is not restricted in the namespace', async () => {
    const { stderr, code } = await node.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(privilegedPod('root')) });
    expect(code).toBe(1);
    expect(stderr).toContain('violates PodSecurity "restricted:latest"');
  });

  test('lets another Pod connect to the Service using its short name and its full name', async () => {
    expect(await fetchFromPod('short', 'greeter')).toContain(`uid ${uid}`);
    expect(await fetchFromPod('full', `greeter.${NAMESPACE}.svc.cluster.local`)).toContain(`uid ${uid}`);
  });

  test('does not resolve the name of a missing Service', async () => {
    expect(await fetchFromPod('absent', `absent.${NAMESPACE}.svc.cluster.local`)).toMatch(
      /^absent\.\S+: Name .* not known/,
    );
  });

  test('lets the host connect to the Service as well', async () => {
    const address = await kubectl(['get', 'service', 'greeter', '-n', NAMESPACE, '-o=jsonpath={.spec.clusterIP}']);
    expect(await (await fetch(`http://${address}`)).text()).toContain(`uid ${uid}`);
  });

  test('provides a claim with a volume that is writable for the user of the Pod', async () => {
    await apply(VOLUME_CLAIM);
    expect(await runPod(podWithVolume({ name: 'writer', args: ['write', '/data/file'], uid }))).toBe(
      '/data/file: written\n',
    );
  });

  test('imports an archive using the name in the archive', () => {
    expect(imported).toEqual([{ reference: IMAGE, digest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) }]);
  });

  test('lets a Pod reference an imported image by its digest', async () => {
    const image = `localhost/greeter@${imported[0]?.digest}`;
    expect(await fetchFromPod('digest', 'greeter', image)).toContain(`uid ${uid}`);
  });

  test('imports the folder of an OCI layout and serves it from a registry on the host', async () => {
    const folder = await temporaryFolder('layout');
    onTestFinished(folder.remove);
    const [archive, layout] = [join(folder.path, 'image.tar'), join(folder.path, 'layout')];
    const ctr = [`--address=${node.containerdSocket}`, '--namespace=k8s.io', 'images'];
    await run('ctr', [...ctr, 'export', '--skip-manifest-json', archive, IMAGE]);
    await run('ctr', [...ctr, 'remove', '--sync', IMAGE]);
    await mkdir(layout);
    await run('tar', ['-C', layout, '-xf', archive]);
    expect(await node.importImage(layout)).toEqual(imported);

    const registry = await startRegistry(layout, node.network.host);
    onTestFinished(registry.stop);
    await node.trustRegistry(registry.host);
    expect(await fetchFromPod('pulled', 'greeter', `${registry.host}/greeter:1`)).toContain(`uid ${uid}`);
    expect(registry.requests()).toBeGreaterThan(0);
  });

  test('ends without leaving any processes or files behind', async () => {
    const running = await readTraces(node.folder);
    expect(running).toMatchObject({ interfaces: [expect.anything()], mounts: [], folders: [expect.anything()] });
    expect(running.processes.length).toBeGreaterThan(15);
    expect(running.cgroups.length).toBeGreaterThan(5);
    await node.stop();
    expect(await readTraces(node.folder)).toEqual(NO_TRACES);
    expect(await readHostSettings()).toEqual(before);
  });
});

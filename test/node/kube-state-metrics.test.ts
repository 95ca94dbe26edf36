import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CONDITION } from '../../src/api/condition-reasons.ts';
import { KINDS } from '../../src/api/kinds/kinds.ts';
import { type ChildProcess, startChild, waitUntilReady } from '../support/child-process.ts';
import { freePorts } from '../support/free-port.ts';
import { ensureBinaries } from '../support/kubernetes/binaries.ts';
import { type Cluster, startCluster } from '../support/kubernetes/cluster.ts';
import { applyDefinitions } from '../support/kubernetes/crds.ts';
import { keyOfSeries, parseExposition, type Series } from '../support/prometheus/exposition.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const CONFIG = join(ROOT, 'config', 'kube-state-metrics', 'custom-resource-state.yaml');
/** The time of all conditions in this file. */
const CHANGED = '2026-01-02T03:04:05Z';

let cluster: Cluster;
let folder: TemporaryFolder;
let program: ChildProcess;
let url: string;

interface Stored {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly creationTimestamp: string };
}

async function kubectl(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

beforeAll(async () => {
  const [{ 'kube-state-metrics': command }, ports] = await Promise.all([
    ensureBinaries(['kube-state-metrics']),
    freePorts(2),
  ]);
  [cluster, folder] = await Promise.all([startCluster(), temporaryFolder('kube-state-metrics')]);
  await applyDefinitions(cluster.kubeconfig, join(ROOT, 'crds'));
  const [port = 0, telemetryPort = 0] = ports;
  url = `http://127.0.0.1:${port}/metrics`;
  const own = [`--port=${port}`, `--telemetry-port=${telemetryPort}`, '--host=127.0.0.1', '--telemetry-host=127.0.0.1'];
  const wanted = ['--custom-resource-state-only', `--custom-resource-state-config-file=${CONFIG}`];
  const log = join(folder.path, 'log');
  program = startChild({ command, args: [`--kubeconfig=${cluster.kubeconfig}`, ...own, ...wanted], log });
  const isReady = async () => (await fetch(url)).ok;
  await waitUntilReady(program, isReady, { name: 'kube-state-metrics', deadlineMs: 60_000 });
});

afterAll(async () => {
  await program?.stop(10_000);
  await cluster?.stop();
  await folder?.remove();
});

const scrape = async (): Promise<Series[]> => parseExposition(await (await fetch(url)).text());

/** The conditions to export, by kind. */
const shown = (kind: string) =>
  ['Ready', 'Live', 'Effective'].filter(type => type in CONDITION[kind as keyof typeof CONDITION]);

/** Adds a status to the first object of a kind, like the controller would. */
async function judge(kind: string, plural: string, status: string): Promise<Stored> {
  const list = JSON.parse(await kubectl('get', `${plural}.sluice.dev`, '-A', '-o=json')) as { items: Stored[] };
  const [object] = list.items;
  if (object === undefined) throw new Error(`${kind} is missing`);
  const { name, namespace } = object.metadata;
  const conditions = shown(kind).map(type => ({
    type,
    status,
    reason: `Because${type}`,
    message: 'message',
    observedGeneration: 1,
    lastTransitionTime: CHANGED,
  }));
  const place = namespace === undefined ? [] : [`--namespace=${namespace}`];
  const patch = ['--subresource=status', '--type=merge', `--patch=${JSON.stringify({ status: { conditions } })}`];
  await kubectl('patch', `${plural}.sluice.dev`, name, ...place, ...patch);
  return object;
}

/** Returns the series that the real program must return for an object. */
function expected({ kind, metadata }: Stored, status: string): Record<string, number> {
  const { name, namespace, creationTimestamp } = metadata;
  const own = {
    customresource_group: 'sluice.dev',
    customresource_kind: kind,
    customresource_version: 'v1alpha1',
    name,
    ...(namespace === undefined ? {} : { namespace }),
  };
  const key = (of: string, labels: object = {}) =>
    keyOfSeries({ name: `sluice_object_${of}`, labels: { ...own, ...labels }, value: 0 });
  return Object.fromEntries([
    [key('created_timestamp_seconds'), Date.parse(creationTimestamp) / 1_000],
    ...shown(kind).flatMap(type => {
      const word = type.toLowerCase();
      return [
        [key(word, { status, reason: `Because${type}` }), status === 'True' ? 1 : 0],
        [key(`${word}_transition_timestamp_seconds`), Date.parse(CHANGED) / 1_000],
      ];
    }),
  ]);
}

test('kube-state-metrics exports the conditions, reasons, and age of objects of all kinds', async () => {
  await kubectl('apply', '--recursive', '-f', join(ROOT, 'config', 'samples'));
  for (const status of ['False', 'Unknown', 'True']) {
    const objects: Stored[] = [];
    for (const [kind, { plural }] of Object.entries(KINDS)) objects.push(await judge(kind, plural, status));
    expect(objects).toHaveLength(8);
    const wanted = Object.assign({}, ...objects.map(object => expected(object, status))) as Record<string, number>;
    expect(Object.keys(wanted).length).toBeGreaterThan(24);
    await expect
      .poll(
        async () => {
          const seen = Object.fromEntries((await scrape()).map(series => [keyOfSeries(series), series.value]));
          return Object.fromEntries(Object.keys(wanted).map(key => [key, seen[key]]));
        },
        { timeout: 60_000, interval: 500 },
      )
      .toEqual(wanted);
  }
});

test('no label contains the email address of a person', async () => {
  expect(JSON.stringify(await scrape())).not.toContain('@');
});

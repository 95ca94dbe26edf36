import { setTimeout as delay } from 'node:timers/promises';
import { GROUP } from '../../src/api/group-version.ts';
import { KINDS } from '../../src/api/kinds/kinds.ts';
import { parseApiWrites, writesBetween } from '../scale/api-writes.ts';
import { type Application, readApplication, refresh } from '../support/argocd/application.ts';
import type { Cluster } from '../support/kubernetes/cluster.ts';
import { kubectl } from '../system/support/world.ts';

/** Argo CD writes the time of a comparison to its Applications. */
const OF_ARGOCD = /^\w+ applications(\/|$)/;

/** The state of a cluster in which nothing should be written. */
export interface Quiet {
  /** The version of each object and its writers, by `<kind>/<namespace>/<name>`. Each write changes the version. */
  readonly versions: Readonly<Record<string, string>>;
  /** The time of the last sync of each Application, and the number of syncs. */
  readonly syncs: Readonly<Record<string, string>>;
}

interface Listed {
  readonly kind: string;
  readonly metadata: {
    readonly namespace?: string;
    readonly name: string;
    readonly resourceVersion: string;
    readonly generation?: number;
    readonly managedFields?: readonly { readonly manager: string; readonly time?: string }[];
  };
}

function syncsOf({ status }: Application): string {
  return `${status?.operationState?.startedAt}, ${status?.history?.length} in all`;
}

export async function readQuiet(cluster: Cluster, applications: readonly string[]): Promise<Quiet> {
  const kinds = Object.values(KINDS).map(({ plural }) => `${plural}.${GROUP}`);
  const asked = [...kinds, 'namespaces'].join(',');
  const list = await kubectl(cluster, ['get', asked, '--all-namespaces', '--show-managed-fields', '-o', 'json']);
  const versions = (JSON.parse(list) as { items: Listed[] }).items.map(({ kind, metadata }) => {
    const { namespace, name, resourceVersion, generation, managedFields = [] } = metadata;
    const writers = managedFields.map(({ manager, time }) => `${manager} ${time}`).join(', ');
    return [`${kind}/${namespace}/${name}`, `${resourceVersion}, generation ${generation}, ${writers}`];
  });
  const read = await Promise.all(applications.map(name => readApplication(cluster, name)));
  const syncs = read.map((application, i) => [applications[i], syncsOf(application as Application)]);
  return { versions: Object.fromEntries(versions), syncs: Object.fromEntries(syncs) };
}

/** Returns the number of writes by request. Excludes dry runs, which Argo CD uses for comparisons. */
async function readWrites(cluster: Cluster) {
  const metrics = await kubectl(cluster, ['get', '--raw', '/metrics']);
  const lines = metrics.split('\n').filter(line => !line.includes('dry_run="All"'));
  return parseApiWrites(lines.join('\n'));
}

/**
 * Waits and reads the state again.
 * @returns the state before and after, the write requests in between, and the number of comparisons by Argo CD for each
 * Application
 */
export async function observeQuiet(cluster: Cluster, applications: readonly string[], forMs: number) {
  const [before, writesBefore, comparedBefore] = await Promise.all([
    readQuiet(cluster, applications),
    readWrites(cluster),
    readComparisons(cluster),
  ]);
  // Forces a new comparison of each object, instead of using the previous result.
  for (const name of applications) await refresh(cluster, name);
  await delay(forMs);
  const [after, writesAfter, comparedAfter] = await Promise.all([
    readQuiet(cluster, applications),
    readWrites(cluster),
    readComparisons(cluster),
  ]);
  const writes = Object.entries(writesBetween(writesBefore, writesAfter)).filter(([key]) => !OF_ARGOCD.test(key));
  return { before, after, writes: Object.fromEntries(writes), compared: comparedAfter - comparedBefore };
}

/** Returns the number of times Argo CD has compared our objects with Git. It uses a dry run for each object. */
async function readComparisons(cluster: Cluster): Promise<number> {
  const metrics = await kubectl(cluster, ['get', '--raw', '/metrics']);
  return metrics
    .split('\n')
    .filter(line => line.startsWith('apiserver_request_total{') && /dry_run="All".*group="sluice.dev"/.test(line))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

import type { Cluster } from '../support/kubernetes/cluster.ts';
import { readApiMetrics } from '../support/kubernetes/metrics.ts';

/** The number of requests, by `VERB resource/subresource`. */
export type ApiWrites = ReadonlyMap<string, number>;

const WRITING = new Set(['APPLY', 'PATCH', 'POST', 'PUT', 'DELETE', 'DELETECOLLECTION']);
/** Excludes heartbeats of the API server and of the Lease, reviews (which do not write anything), and Events. */
const ASIDE = new Set([
  'leases',
  'tokenreviews',
  'subjectaccessreviews',
  'selfsubjectaccessreviews',
  'selfsubjectreviews',
  'events',
  'endpointslices',
  'endpoints',
]);

/**
 * Parses `apiserver_request_total` in the text format of Prometheus.
 * @param only whether to count all requests, or only successful ones
 */
export function parseApiWrites(metrics: string, only: 'all' | 'done' = 'all'): ApiWrites {
  const writes = new Map<string, number>();
  for (const line of metrics.split('\n')) {
    const [, labels, value] = /^apiserver_request_total\{(.*)\} (\S+)$/.exec(line) ?? [];
    if (labels === undefined) continue;
    const label = (name: string): string => new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    const [verb, resource, subresource] = [label('verb'), label('resource'), label('subresource')];
    if (!WRITING.has(verb) || ASIDE.has(resource)) continue;
    if (only === 'done' && !label('code').startsWith('2')) continue;
    const key = `${verb} ${resource}${subresource === '' ? '' : `/${subresource}`}`;
    writes.set(key, (writes.get(key) ?? 0) + Number(value));
  }
  return writes;
}

/** Returns the number of requests between two readings, by `VERB resource/subresource`. */
export function writesBetween(before: ApiWrites, after: ApiWrites): Record<string, number> {
  return Object.fromEntries(
    [...after].flatMap(([key, count]) => {
      const more = count - (before.get(key) ?? 0);
      return more === 0 ? [] : [[key, more] as const];
    }),
  );
}

export async function readApiWrites(cluster: Cluster, only?: 'all' | 'done'): Promise<ApiWrites> {
  return parseApiWrites(await readApiMetrics(cluster), only);
}

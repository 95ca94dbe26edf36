import { expect, test } from 'vitest';
import { parseApiWrites, writesBetween } from './api-writes.ts';

const METRICS = `# HELP apiserver_request_total Counter of apiserver requests
apiserver_request_total{code="200",component="apiserver",dry_run="",group="sluice.dev",resource="blocks",scope="resource",subresource="",verb="APPLY",version="v1alpha1"} 3
apiserver_request_total{code="409",component="apiserver",dry_run="",group="sluice.dev",resource="blocks",scope="resource",subresource="",verb="APPLY",version="v1alpha1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="sluice.dev",resource="blocks",scope="resource",subresource="status",verb="APPLY",version="v1alpha1"} 2
apiserver_request_total{code="200",component="apiserver",dry_run="",group="sluice.dev",resource="blocks",scope="cluster",subresource="",verb="LIST",version="v1alpha1"} 9
apiserver_request_total{code="200",component="apiserver",dry_run="",group="coordination.k8s.io",resource="leases",scope="resource",subresource="",verb="PUT",version="v1"} 7
apiserver_request_duration_seconds_count{resource="blocks",verb="APPLY"} 5
`;

test('counts writes by purpose, including refused ones, but no reads and heartbeats', () => {
  const first = parseApiWrites(METRICS);
  expect(Object.fromEntries(first)).toEqual({ 'APPLY blocks': 4, 'APPLY blocks/status': 2 });
  expect(parseApiWrites(METRICS, 'done').get('APPLY blocks')).toBe(3);
  const second = parseApiWrites(
    `${METRICS.replace('} 2\n', '} 5\n')}apiserver_request_total{resource="secrets",verb="POST"} 1\n`,
  );
  expect(writesBetween(first, second)).toEqual({ 'APPLY blocks/status': 3, 'POST secrets': 1 });
  expect(writesBetween(first, first)).toEqual({});
});

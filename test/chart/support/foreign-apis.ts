import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Manifest, parseObjects, ROOT } from './helm.ts';

const run = promisify(execFile);

/** Modules containing the definitions in their source, with the files used by the chart. */
const FILES: Readonly<Record<string, readonly string[]>> = {
  'github.com/prometheus-operator/prometheus-operator': ['podmonitors', 'prometheusrules'].map(
    plural => `example/prometheus-operator-crd/monitoring.coreos.com_${plural}.yaml`,
  ),
  'github.com/cert-manager/cert-manager': ['deploy/crds/crd-certificates.yaml'],
  'sigs.k8s.io/gateway-api': ['config/crd/standard/gateway.networking.k8s.io_httproutes.yaml'],
};

/**
 * Returns the CustomResourceDefinitions of the Prometheus Operator, cert-manager and the Gateway API, from the versions
 * that test/support/kubernetes/apis/go.mod locks.
 */
export async function foreignApis(): Promise<Manifest[]> {
  const cwd = join(ROOT, 'test', 'support', 'kubernetes', 'apis');
  const env = { ...process.env, GOTOOLCHAIN: 'local', GOFLAGS: '-mod=readonly' };
  const files = Object.entries(FILES).map(async ([module, paths]) => {
    const { stdout } = await run('go', ['mod', 'download', '-json', module], { cwd, env });
    const { Dir: folder } = JSON.parse(stdout) as { Dir: string };
    return Promise.all(paths.map(path => readFile(join(folder, path), 'utf8')));
  });
  const objects = (await Promise.all(files)).flat(2).flatMap(parseObjects);
  // cert-manager has labels that are set by its chart.
  return objects.map(
    ({ metadata: { name, annotations = {} }, ...rest }) => ({ ...rest, metadata: { name, annotations } }) as Manifest,
  );
}

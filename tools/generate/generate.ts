import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { GROUP } from '../../src/api/group-version.ts';
import { KINDS } from '../../src/api/kinds/kinds.ts';
import { SCHEMA_ANNOTATION } from '../../src/api/well-known.ts';
import { describeCrd } from '../../src/kube/definitions/crds.ts';
import { renderAlerts } from './alerts/alerts.ts';
import { renderArgocd } from './argocd/argocd.ts';
import { renderChart } from './chart/chart.ts';
import { renderDashboards } from './dashboards/dashboards.ts';
import { renderDocs } from './docs/docs.ts';
import { renderKubeStateMetrics } from './kube-state-metrics/kube-state-metrics.ts';
import { renderKustomize } from './kustomize/kustomize.ts';
import { renderRbac } from './rbac/rbac.ts';
import { renderRedisAcl } from './redis/acl.ts';

/** A generated file, including its text and its path relative to the project root. */
export interface GeneratedFile {
  path: string;
  text: string;
}

/** Renders the CustomResourceDefinitions of all kinds, which are the files in crds/. */
export function renderCrds(): GeneratedFile[] {
  return Object.values(KINDS).map(kind => ({
    path: `crds/${GROUP}_${kind.plural}.yaml`,
    text: `# Generated from src/api by tools/generate/generate.ts. Change it there.\n${stringify(describeCrd(kind), {
      lineWidth: 110,
      aliasDuplicateObjects: false,
    })}`,
  }));
}

/** Renders the hashes that the controller compares with the annotations of the CustomResourceDefinitions. */
function renderSchemaHashes(): GeneratedFile {
  const hashes = Object.values(KINDS).map(kind => [
    kind.kind,
    describeCrd(kind).metadata.annotations[SCHEMA_ANNOTATION],
  ]);
  return {
    path: 'src/kube/definitions/schema-hashes.json',
    text: `${JSON.stringify(Object.fromEntries(hashes), null, 2)}\n`,
  };
}

/** The message of a test that found outdated files. */
export const OUT_OF_DATE = 'generated files are out of date; run make generate and commit the changes';

/** Returns the paths of all files which are missing or have a different text on disk. */
export function driftedFiles(root: string, files: readonly GeneratedFile[]): string[] {
  return files.filter(file => readOrNothing(join(root, file.path)) !== file.text).map(file => file.path);
}

function readOrNothing(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}

/** Renders all generated files. */
export async function renderAll(): Promise<GeneratedFile[]> {
  const manifests = [...renderCrds(), ...renderRbac()];
  const monitoring = [...renderAlerts(), ...renderDashboards()];
  return [
    ...manifests,
    ...monitoring,
    ...renderKubeStateMetrics(),
    renderSchemaHashes(),
    renderRedisAcl(),
    ...renderChart(monitoring),
    ...renderKustomize(manifests),
    ...renderArgocd(),
    ...(await renderDocs()),
  ];
}

async function main(root: string, args: readonly string[]): Promise<number> {
  const files = await renderAll();
  const drifted = driftedFiles(root, files);
  if (args.includes('--check')) {
    for (const path of drifted) process.stderr.write(`${path} is out of date: run make generate\n`);
    return drifted.length === 0 ? 0 : 1;
  }
  for (const file of files.filter(({ path }) => drifted.includes(path))) {
    mkdirSync(dirname(join(root, file.path)), { recursive: true });
    writeFileSync(join(root, file.path), file.text);
    process.stdout.write(`wrote ${file.path}\n`);
  }
  return 0;
}

if (import.meta.main) process.exitCode = await main(join(import.meta.dirname, '..', '..'), process.argv.slice(2));

import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { type CommandResult, GOGC } from '../../support/kubernetes/kubectl.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

export const ROOT = join(import.meta.dirname, '..', '..', '..');
export const CHART = join(ROOT, 'charts', 'sluice');

/**
 * The flag of commands that install the chart without validating it against the OpenAPI document, which takes a third
 * of their CPU time. `server.test.ts` lets the API server validate the chart.
 */
export const UNVALIDATED = ['--disable-openapi-validation'];

/** The parts of a Kubernetes object used by the tests. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly [field: string]: unknown;
}

/** Chart values, in the same format as in a file or a flag. */
export type ValueSet = Readonly<Record<string, unknown>>;

export type Helm = (
  args: readonly string[],
  options?: { readonly values?: ValueSet; readonly kubeconfig?: string },
) => Promise<CommandResult>;

/** Returns helm, using separate folders instead of the user's folders. */
export async function openHelm(): Promise<Helm> {
  const [{ helm }, folder] = await Promise.all([ensureBinaries(['helm']), temporaryFolder('helm')]);
  const homes = { HELM_CACHE_HOME: folder.path, HELM_CONFIG_HOME: folder.path, HELM_DATA_HOME: folder.path };
  return async (args, { values, kubeconfig = '/nowhere' } = {}) => {
    const child = spawn(helm, values === undefined ? args : [...args, '--values=-'], {
      env: { GOGC, ...process.env, ...homes, KUBECONFIG: kubeconfig },
    });
    const ended = new Promise<number>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', code => resolve(code ?? 1));
    });
    child.stdin.on('error', () => {});
    child.stdin.end(JSON.stringify(values ?? {}));
    const [stdout, stderr, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { stdout, stderr, code };
  };
}

/** Returns the output of a command. @throws with the standard error if it failed */
export function outputOf({ code, stdout, stderr }: CommandResult): string {
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

/**
 * Parses a stream of YAML documents as Kubernetes does, using YAML 1.1. Excludes empty documents. Returns the same
 * object for the same text because most documents, such as the definitions, are in every rendering.
 */
export function parseObjects(yaml: string): Manifest[] {
  return yaml.split(/^---$/m).flatMap(text => {
    const objects = parsed.get(text) ?? parseText(text);
    parsed.set(text, objects);
    return objects;
  });
}

/** The objects of each text, for all test files in this process. */
const parsed = new Map<string, readonly Manifest[]>();

function parseText(yaml: string): readonly Manifest[] {
  return parseAllDocuments(yaml, { version: '1.1' }).flatMap(document => {
    if (document.errors.length > 0) throw document.errors[0];
    const object = document.toJS() as Manifest | null;
    return object === null ? [] : [deepFreeze(object)];
  });
}

/** Makes an object immutable because several tests receive it. */
function deepFreeze<T extends object>(object: T): T {
  for (const field of Object.values(object)) if (typeof field === 'object' && field !== null) deepFreeze(field);
  return Object.freeze(object);
}

interface Rendering {
  readonly release?: string;
  readonly namespace?: string;
  /** Additional APIs of the cluster. */
  readonly apis?: readonly string[];
}

/** The output of Helm by its input, for all test files in this process. Many tests render the same values. */
const rendered = new Map<string, Promise<string>>();

/** Renders the chart without a cluster. Excludes objects created by `helm test`, which have their own namespaces. */
export async function renderChart(helm: Helm, values: ValueSet, options: Rendering = {}): Promise<Manifest[]> {
  const { release = 'sluice', namespace = 'sluice-system', apis = [] } = options;
  const flags = apis.map(api => `--api-versions=${api}`);
  const args = ['template', release, CHART, '--skip-tests', `--namespace=${namespace}`, ...flags];
  const input = JSON.stringify([args, values]);
  const output = rendered.get(input) ?? helm(args, { values }).then(outputOf);
  rendered.set(input, output);
  return parseObjects(await output);
}

import { join } from 'node:path';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { type Credentials, openCredentials } from '../../../src/kube/credentials/credentials.ts';
import { collectionPath, objectPath, resourceOf } from '../../../src/kube/resource.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { type Kubectl, kubectlFor } from '../../support/kubernetes/kubectl.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { manifestOf } from './manifests/case.ts';
import { MANIFESTS } from './manifests/table.ts';

const CRDS = join(import.meta.dirname, '..', '..', '..', 'crds');
const RUN = `manifests-${process.pid}`;

let folder: TemporaryFolder;
let kubectl: Kubectl;
let credentials: Credentials;

async function succeed(args: readonly string[]): Promise<void> {
  const { code, stderr } = await kubectl(args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
}

/** The parameters that kubectl sends as well. Without `fieldValidation`, an unknown field is only a warning. */
const PARAMETERS = { fieldManager: 'manifests', fieldValidation: 'Strict' };

/**
 * Sends a manifest to the API server like kubectl, which would start a process for each of several hundred test cases.
 * Returns the status and the message of a refusal.
 */
async function send(
  method: 'POST' | 'PATCH',
  path: string,
  manifest: string,
  query: object = {},
): Promise<{ readonly status: number; readonly message: string }> {
  const { headers, calls } = await credentials.access();
  const answer = await request(`${credentials.server}${path}?${new URLSearchParams({ ...PARAMETERS, ...query })}`, {
    method,
    dispatcher: calls,
    headers: { ...headers, 'content-type': method === 'POST' ? 'application/json' : 'application/apply-patch+yaml' },
    body: manifest,
  });
  const { message = '' } = (await answer.body.json()) as { readonly message?: string };
  return { status: answer.statusCode, message };
}

async function apply(path: string, manifest: string): Promise<void> {
  const { status, message } = await send('PATCH', path, manifest);
  if (status >= 300) throw new Error(`${path}: ${status} ${message}`);
}

beforeAll(async () => {
  folder = await temporaryFolder('manifests');
  const { kubectl: binary } = await ensureBinaries(['kubectl']);
  kubectl = kubectlFor({ binary, kubeconfig: inject('kubeconfig'), cache: folder.path });
  credentials = openCredentials({ kubeconfig: inject('kubeconfig') }, systemClock.nowMs);
  // The kinds are installed using kubectl, so the tests use exactly the rules in the files.
  await succeed(['apply', '--server-side', '--force-conflicts', '--field-manager=sluice-tests', `--filename=${CRDS}`]);
  await succeed(['create', 'namespace', RUN]);
});

afterAll(async () => {
  await credentials?.close();
  await kubectl(['delete', 'workspaces,accounts', '--selector', `run=${RUN}`, '--wait=false']);
  await kubectl(['delete', 'namespace', RUN, '--wait=false']);
  await folder.remove();
});

// The test cases run concurrently. Each of them has a separate object.
describe.concurrent.each(Object.values(KINDS))('$kind', ({ kind }) => {
  const resource = resourceOf(kind);
  const namespace = resource.namespaced ? RUN : undefined;
  const cases = MANIFESTS.filter(found => found.kind === kind).map((found, index) => ({
    ...found,
    verdict: found.refusal === undefined ? 'accepts' : 'refuses',
    name: found.name ?? `${RUN}-${index}`,
  }));

  it.each(cases)('$verdict $title', async found => {
    const at = { name: found.name, namespace: RUN, labels: { run: RUN } };
    const object = { name: found.name, namespace };
    if (found.before) await apply(objectPath(resource, object), manifestOf(found, { ...at, spec: found.before }));
    if (found.status) {
      const manifest = manifestOf(found, { ...at, spec: found.before ?? {}, status: found.status });
      await apply(objectPath(resource, object, 'status'), manifest);
    }

    // Objects are created as JSON. Changes of existing objects are applied as YAML, which is not possible for all
    // manifests: the YAML parser folds or refuses some control characters before any rule is evaluated.
    const manifest = manifestOf(found, { ...at, spec: found.spec });
    const answer = found.before
      ? await send('PATCH', objectPath(resource, object), manifest, { dryRun: 'All' })
      : await send('POST', collectionPath(resource, namespace), manifest, { dryRun: 'All' });

    if (found.refusal === undefined) expect(answer).toEqual({ status: found.before ? 200 : 201, message: '' });
    else {
      expect(answer.message).toContain(found.refusal);
      expect(answer.status).toBeGreaterThanOrEqual(400);
    }
  });
});

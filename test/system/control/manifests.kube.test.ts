import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { ensureBinaries } from '../../support/kubernetes/binaries.ts';
import { type Kubectl, kubectlFor } from '../../support/kubernetes/kubectl.ts';
import { type TemporaryFolder, temporaryFolder } from '../../support/temporary-folder.ts';
import { manifestOf } from './manifests/case.ts';
import { MANIFESTS } from './manifests/table.ts';

const CRDS = join(import.meta.dirname, '..', '..', '..', 'crds');
const RUN = `manifests-${process.pid}`;

let folder: TemporaryFolder;
let kubectl: Kubectl;

async function succeed(args: readonly string[], stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await kubectl(args, { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

// Objects are created as JSON. Changes of existing objects are applied as YAML, which is not possible for all
// manifests: the YAML parser folds or refuses some control characters before any rule is evaluated.
const CREATE = ['create', '--field-manager=manifests', '-f', '-'];
const APPLY = ['apply', '--server-side', '--field-manager=manifests', '-f', '-'];

beforeAll(async () => {
  folder = await temporaryFolder('manifests');
  const { kubectl: binary } = await ensureBinaries(['kubectl']);
  kubectl = kubectlFor({ binary, kubeconfig: inject('kubeconfig'), cache: folder.path });
  // The kinds are installed using kubectl, so the tests use exactly the rules in the files.
  await succeed(['apply', '--server-side', '--force-conflicts', '--field-manager=sluice-tests', `--filename=${CRDS}`]);
  await succeed(['create', 'namespace', RUN]);
});

afterAll(async () => {
  await kubectl(['delete', 'workspaces,accounts', '--selector', `run=${RUN}`, '--wait=false']);
  await kubectl(['delete', 'namespace', RUN, '--wait=false']);
  await folder.remove();
});

// The test cases run concurrently. Each of them has a separate object, and waits for kubectl most of the time.
describe.concurrent.each(Object.values(KINDS))('$kind', ({ kind }) => {
  const cases = MANIFESTS.filter(found => found.kind === kind).map((found, index) => ({
    ...found,
    verdict: found.refusal === undefined ? 'accepts' : 'refuses',
    name: found.name ?? `${RUN}-${index}`,
  }));

  it.each(cases)('$verdict $title', async found => {
    const at = { name: found.name, namespace: RUN, labels: { run: RUN } };
    if (found.before) await succeed(APPLY, manifestOf(found, { ...at, spec: found.before }));
    if (found.status) {
      const manifest = manifestOf(found, { ...at, spec: found.before ?? {}, status: found.status });
      await succeed([...APPLY, '--subresource=status'], manifest);
    }

    const answer = await kubectl([...(found.before ? APPLY : CREATE), '--dry-run=server'], {
      stdin: manifestOf(found, { ...at, spec: found.spec }),
    });

    expect(answer).toMatchObject({
      code: found.refusal === undefined ? 0 : 1,
      stderr: expect.stringContaining(found.refusal ?? ''),
    });
  });
});

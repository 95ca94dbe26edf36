import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureBinaries } from './kubernetes/binaries.ts';
import type { Sluice } from './sluice.ts';
import { stopOnSignal } from './stop-signal.ts';
import { createClosers } from './tour/closers.ts';
import { type Environment, formatEnvironment, formatInvitation } from './tour/invitation.ts';
import { createNarrator, formatMs } from './tour/narrator.ts';
import { whenOrphaned } from './tour/orphan.ts';
import { createPublisher } from './tour/publisher.ts';
import { type Received, type Receiver, startReceiver } from './tour/receiver.ts';
import { copySamples, createIngressKey, readSigningSecrets, SAMPLE_PORT } from './tour/samples.ts';
import { kubectl, lines, type Stack, startStack } from './tour/stack.ts';
import {
  type Scene,
  tellClosedGate,
  tellDelivery,
  tellDuplicate,
  tellRefusals,
  tellRetries,
  tellRevocation,
} from './tour/story.ts';
import { createProducer, publicIdOf } from './tour/tenant.ts';

/**
 * Runs Sluice on this machine, demonstrates its features, and continues to run until Ctrl-C. With `--once`, it exits
 * afterwards with code 0, or with 1 if there was an unexpected result.
 */

const LOOK_EVERY_MS = 200;

const once = process.argv.includes('--once');
const closers = createClosers();
const narrator = createNarrator({ write: console.log, nowMs: () => performance.now() });

let sluice: Sluice | undefined;
/** Set to true after a signal because later failures are part of the shutdown. */
let ending = false;

/** Set to true after the story, when all other deliveries are printed. The story prints its own deliveries. */
let storyIsTold = false;

/** Set to true when everything is running, so that Ctrl-C is a successful end. */
let staysUp = false;

function tellReceived({ id, type, groupKey, signature, status }: Received): void {
  if (!storyIsTold) return;
  const verdict = signature === 'valid' ? 'signature valid' : `signature NOT valid (${signature.refusal})`;
  narrator.tell(`globex received ${id} (${type}, ${groupKey}), ${verdict}, answered ${status}`);
}

async function startEndpoint({ cluster }: Stack): Promise<Receiver> {
  const options = {
    readSecrets: () => readSigningSecrets(cluster, 'globex', 'acme-orders'),
    onReceived: tellReceived,
  };
  try {
    return await startReceiver({ ...options, port: SAMPLE_PORT });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    return startReceiver({ ...options, port: 0 });
  }
}

async function applySamples({ cluster, folder, issuer }: Stack, { port }: Receiver): Promise<void> {
  if (port !== SAMPLE_PORT) narrator.tell(`port ${SAMPLE_PORT} is taken: the samples use ${port} instead`);
  const started = performance.now();
  const samples = await copySamples(folder, { port, issuer: issuer.url });
  const applied = await kubectl(cluster, ['apply', '-f', samples]);
  narrator.tell(`applied config/samples: ${lines(applied)} objects`);
  const all = ['waas,waas-admin', '--all', '--all-namespaces'];
  const ready = await kubectl(cluster, ['wait', '--for=condition=Ready', '--timeout=60s', ...all]);
  narrator.tell(`${lines(ready)} of them became Ready within ${formatMs(performance.now() - started)}`);
}

async function run(): Promise<void> {
  const stack = await startStack({ tell: narrator.tell, closers });
  ({ sluice } = stack);
  const { cluster, folder } = stack;
  const receiver = await startEndpoint(stack);
  closers.add(receiver.stop);
  narrator.tell(`the endpoint of globex listens on port ${receiver.port}`);
  await applySamples(stack, receiver);
  const key = await createIngressKey(cluster, 'acme', 'shop');
  const path = await kubectl(cluster, ['get', 'cstream', 'orders', '-n', 'acme', '-o=jsonpath={.status.ingressPath}']);
  const eventsUrl = `${stack.sluice.ingressUrl}${path}`;
  narrator.tell(`created an ingress key of acme: Secret shop, type sluice.dev/ingress-key; events go to POST ${path}`);

  const scene: Scene = {
    narrator,
    cluster,
    receiver,
    publish: createPublisher({ url: eventsUrl, key }),
    quietMs: 300,
    countNotActivated: () => stack.sluice.metric('sluice_ingress_not_routed_total', { reason: 'not_activated' }),
  };
  await tellDelivery(scene);
  await tellDuplicate(scene);
  await tellClosedGate(scene);
  await tellRefusals(scene);
  await tellRetries(scene);
  await tellRevocation(scene);

  const problems = narrator.problems();
  const summary = problems.length === 0 ? 'all as expected' : `${problems.length} things were not as expected`;
  narrator.tell(`the story ends: ${summary}`);
  if (once) return;
  storyIsTold = true;
  const tenant = await createProducer(cluster, stack.issuer.url, 'ada');
  // The groups of these people own the Accounts in the samples.
  const token = (sub: string, group: string) =>
    stack.issuer.token({ sub, groups: [group] }, { expiresInSeconds: 86_400 });
  const environment: Environment = {
    kubeconfig: cluster.kubeconfig,
    kubectlCache: join(folder, 'kubectl-cache'),
    kubectl: (await ensureBinaries(['kubectl'])).kubectl,
    eventsUrl,
    key,
    facadeUrl: stack.sluice.facadeUrl,
    tenant,
    issuer: stack.issuer.url,
    acme: await publicIdOf(cluster, ['workspace/acme']),
    globex: await publicIdOf(cluster, ['workspace/globex']),
    integration: await publicIdOf(cluster, ['integration/globex', '-n', 'acme']),
    tokens: { ada: await token('ada', 'acme-admins'), bob: await token('bob', 'globex-admins') },
    opsUrl: stack.sluice.opsUrl,
    receiverPort: receiver.port,
  };
  const file = join(folder, 'env');
  await writeFile(file, formatEnvironment(environment), { mode: 0o600 });
  staysUp = true;
  console.log(formatInvitation({ environment, file, log: stack.sluice.log }));
  while (stack.sluice.running()) await delay(LOOK_EVERY_MS);
  throw new Error('sluice ended by itself');
}

async function explain(cause: unknown): Promise<void> {
  console.error(cause instanceof Error ? cause.message : cause);
  if (sluice === undefined) return;
  const log = await readFile(sluice.log, 'utf8').catch(() => '');
  console.error(`the end of sluice's log:\n${log.trimEnd().split('\n').slice(-15).join('\n')}`);
}

stopOnSignal(
  async () => {
    ending = true;
    console.log('\nending …');
    await closers.closeAll();
  },
  { interruptIsSuccess: () => staysUp },
);

// make only sends a signal to the shell of its recipe. The shell ends, and this program continues.
if (process.env.MAKELEVEL !== undefined) {
  whenOrphaned(() => {
    if (!ending) process.kill(process.pid, 'SIGTERM');
  });
}

try {
  await run();
  process.exitCode = narrator.problems().length === 0 ? 0 : 1;
} catch (error) {
  if (!ending) await explain(error);
  process.exitCode = 1;
}
// After a signal, the handler ends the process.
if (!ending) await closers.closeAll();

import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tenantId } from '../../src/core/ids/ids.ts';
import { buildImage } from '../../tools/image/build.ts';
import { CHART, openHelm, outputOf, ROOT } from '../chart/support/helm.ts';
import { type ChildProcess, startChild } from '../support/child-process.ts';
import { type Node, startNode } from '../support/node-cluster/node.ts';
import { nodeRefusal } from '../support/node-cluster/requirements.ts';
import { type TemporaryFolder, temporaryFolder } from '../support/temporary-folder.ts';
import { eventually } from '../system/support/deadline.ts';
import { KUBECTL_COMMANDS, REDIS_COMMANDS } from '../telemetry/first-steps.ts';
import { shopObjects } from './shop.ts';

const refusal = nodeRefusal();
const KEY = 'an-ingress-key-of-the-shop';
const REDIS_PORT = 6379;
const HOOKS_PORT = 8080;
const NAMESPACE = 'sluice-system';
const RESTRICTED = 'pod-security.kubernetes.io/enforce=restricted';
const ROLES = ['controller', 'ingress', 'dispatcher'];

interface Delivery {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Installs the image and the chart of this project as a platform engineer would, on a real kubelet. */
describe.skipIf(refusal !== undefined)('Sluice on a node', () => {
  let node: Node;
  let folder: TemporaryFolder;
  let redis: ChildProcess;
  let hooks: Server;
  const deliveries: Delivery[] = [];

  async function kubectl(args: readonly string[], objects?: readonly object[]): Promise<string> {
    const list = { apiVersion: 'v1', kind: 'List', items: objects };
    return outputOf(await node.kubectl(args, objects === undefined ? {} : { stdin: JSON.stringify(list) }));
  }

  async function helm(args: readonly string[], values?: object): Promise<string> {
    const run = await openHelm();
    const options = { kubeconfig: node.kubeconfig, ...(values === undefined ? {} : { values: values as {} }) };
    return outputOf(await run([...args, '--namespace', NAMESPACE], options));
  }

  beforeAll(async () => {
    folder = await temporaryFolder('install');
    const image = join(folder.path, 'image');
    [node] = await Promise.all([startNode(), buildImage(ROOT, image)]);
    await node.importImage(image, 'localhost/sluice');
    const { host } = node.network;
    const settings = ['--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];
    const address = ['--bind', host, '--port', `${REDIS_PORT}`, '--protected-mode', 'no', '--dir', folder.path];
    redis = startChild({
      command: 'redis-server',
      args: [...address, ...settings, '--save', ''],
      log: join(folder.path, 'redis.log'),
    });
    hooks = createServer((request, response) => {
      void text(request).then(body => {
        deliveries.push({ headers: request.headers, body });
        response.writeHead(204).end();
      });
    });
    await once(hooks.listen(HOOKS_PORT, host), 'listening');
    await kubectl(['create', 'namespace', NAMESPACE]);
    await kubectl(['label', 'namespace', NAMESPACE, RESTRICTED]);
  });

  afterAll(async () => {
    hooks?.close();
    await node?.stop();
    await redis?.stop();
    await folder?.remove();
  });

  test('becomes ready a few minutes after helm install, using the Pod Security Standard restricted', async () => {
    const { host } = node.network;
    const beganMs = performance.now();
    await helm(['install', 'sluice', CHART, '--wait', '--timeout=3m'], {
      image: { registry: 'localhost', pullPolicy: 'Never' },
      redis: { url: `redis://${host}:${REDIS_PORT}` },
      facade: { enabled: false },
      allowedNetworks: [`${host}/32`],
      ...Object.fromEntries(ROLES.map(role => [role, { replicas: 1 }])),
    });
    console.log(`ready ${((performance.now() - beganMs) / 1_000).toFixed(1)} s after helm install`);
    const pods = JSON.parse(await kubectl(['get', 'pods', '-n', NAMESPACE, '-o', 'json'])) as {
      readonly items: readonly {
        readonly status: { readonly containerStatuses: readonly { restartCount: number }[] };
      }[];
    };
    expect(pods.items.flatMap(({ status }) => status.containerStatuses.map(each => each.restartCount))).toEqual(
      ROLES.map(() => 0),
    );
  });

  test('delivers a signed event that was published using its Service', async () => {
    const url = `http://${node.network.host}:${HOOKS_PORT}/hooks`;
    await kubectl(['apply', '--server-side', '-f', '-'], shopObjects(KEY, { url }));
    const waiting = [
      'wait',
      '--timeout=60s',
      '--for=condition=Live',
      'subscription.sluice.dev/shop-orders',
      '-n',
      'ada',
    ];
    await kubectl(waiting);
    await kubectl([
      'wait',
      '--timeout=60s',
      '--for=condition=Effective',
      'activations.sluice.dev',
      '--all',
      '-n',
      'shop',
    ]);
    const service = ['get', 'service', 'sluice-ingress', '-n', NAMESPACE, '-o', 'jsonpath={.spec.clusterIP}'];
    const address = await kubectl(service);
    const publish = async () => {
      const response = await fetch(`http://${address}/events/${tenantId('shop')}/orders`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${KEY}`,
          'content-type': 'application/json',
          'webhook-id': 'order-1',
          'x-sluice-event-type': 'order.created',
          'x-sluice-group-key': 'customer-42',
        },
        body: '{"order":1}',
      });
      return response.status;
    };
    await eventually('ingress accepts the event', async () => (await publish()) === 202);
    await eventually('the delivery', () => Promise.resolve(deliveries.length > 0));
    const [{ headers, body }] = deliveries as [Delivery];
    expect(body).toBe('{"order":1}');
    const secret = await kubectl([
      'get',
      'secret',
      'shop-orders-signing',
      '-n',
      'ada',
      '-o',
      'jsonpath={.data.secret}',
    ]);
    const key = Buffer.from(Buffer.from(secret, 'base64').toString().replace('whsec_', ''), 'base64');
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`;
    expect(headers['webhook-signature']).toContain(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`);
  });

  test('passes helm test without leaving any objects behind', { timeout: 300_000 }, async () => {
    const run = await openHelm();
    const options = { kubeconfig: node.kubeconfig };
    const { stdout, stderr } = await run(['test', 'sluice', '--timeout=4m', '--namespace', NAMESPACE], options);
    expect(stdout, stderr).toMatch(/TEST SUITE: +test-sluice\n(.*\n){2}Phase: +Succeeded/);
    // Helm writes the log of the pod to standard error.
    expect(stderr).toContain('An event of test-sluice/test was accepted by http://sluice-ingress.sluice-system:80');
    expect(await kubectl(['get', 'namespaces,workspaces,accounts,pods', '-A', '-o', 'name'])).not.toContain('test');
  });

  test('is limited by its admission policies and by the permissions of its service accounts', async () => {
    const port = await kubectl([
      'get',
      'pods',
      '-n',
      NAMESPACE,
      '-l',
      'app.kubernetes.io/component=controller',
      '-o',
      'jsonpath={.items[0].status.podIP}',
    ]);
    const metrics = await (await fetch(`http://${port}:9090/metrics`)).text();
    expect(metrics).toContain('sluice_admission_policies_missing{role="controller"} 0');
    const create = ['create', 'secret', 'generic', 'theirs', '-n', 'shop', '--dry-run=server'];
    const { stderr } = await node.kubectl([...create, `--as=system:serviceaccount:${NAMESPACE}:sluice-controller`]);
    expect(stderr).toContain("ValidatingAdmissionPolicy 'sluice-controller-secrets'");
  });

  test.each(KUBECTL_COMMANDS)('supports the first step of a runbook: %s', async command => {
    const [, ...args] = command.split(' ');
    // This throws if the command fails.
    await kubectl(args);
  });

  test.each(REDIS_COMMANDS)('supports the first step of a runbook: %s', async command => {
    const [program = '', ...args] = command.split(' ');
    const at = ['-e', '-h', node.network.host, '-p', `${REDIS_PORT}`];
    const { stdout } = await promisify(execFile)(program, [...at, ...args], { timeout: 30_000 });
    expect(stdout).not.toMatch(/^(\(error\)|ERR)/);
  });

  test('does not leave any namespaces behind if it is removed as documented', { timeout: 240_000 }, async () => {
    await helm(['uninstall', 'sluice', '--wait', '--timeout=2m']);
    await kubectl(['delete', '-f', join(ROOT, 'crds'), '--timeout=60s']);
    await kubectl(['delete', 'namespace', 'shop', 'ada', NAMESPACE, '--timeout=90s']);
    const left = await kubectl(['get', 'namespaces', '-o', 'name']);
    expect(left).not.toMatch(/shop|ada|sluice/);
  });
});

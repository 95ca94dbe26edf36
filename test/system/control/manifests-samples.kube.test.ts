import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KINDS } from '../../../src/api/kinds/kinds.ts';
import { describeCrd } from '../../../src/kube/definitions/crds.ts';
import { type Cluster, startCluster } from '../../support/kubernetes/cluster.ts';
import { ESTABLISHED, untilEstablished } from '../../support/kubernetes/crds.ts';
import { eventually } from '../support/deadline.ts';

const ROOT = join(import.meta.dirname, '..', '..', '..');
const SAMPLES = join(ROOT, 'config', 'samples');

// This requires a separate cluster because other tests use the same names as the samples.
let cluster: Cluster;

async function kubectl(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await cluster.kubectl(args);
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

beforeAll(async () => {
  cluster = await startCluster();
  await kubectl('apply', '--server-side', '-f', join(ROOT, 'crds'));
  await untilEstablished(() => kubectl(...ESTABLISHED, '--all', 'crd'));
  // The API server publishes the descriptions later than it serves the kinds.
  const areDescribed = async () => {
    const { schemas } = (await readDocument()).components;
    return Object.keys(KINDS).every(kind => schemas[schemaName(kind)] !== undefined);
  };
  await eventually('the kinds are described', areDescribed, { withinMs: 30_000 });
});

afterAll(() => cluster?.stop());

const selectActivations = (selector: string) =>
  kubectl('get', 'actv', '-n', 'acme', '-o', 'name', '--field-selector', selector);

/** A node of the OpenAPI document that the API server publishes. */
interface Described {
  description?: string;
  properties?: Record<string, Described>;
  items?: Described;
}

const schemaName = (kind: string) => `dev.sluice.v1alpha1.${kind}`;

async function readDocument(): Promise<{ components: { schemas: Record<string, Described> } }> {
  return JSON.parse(await kubectl('get', '--raw', '/openapi/v3/apis/sluice.dev/v1alpha1'));
}

function undescribed(path: string, node: Described): string[] {
  const below = [
    ...Object.entries(node.properties ?? {}).map(([name, child]) => ({ path: `${path}.${name}`, child })),
    ...(node.items ? [{ path: `${path}[]`, child: node.items }] : []),
  ];
  return [...(node.description ? [] : [path]), ...below.flatMap(({ path: at, child }) => undescribed(at, child))];
}

describe('the definitions', () => {
  it('are structural, accepted within the cost budget of CEL, and served', async () => {
    const conditions = '{range .items[*]}{.status.conditions[*].type}{"\\n"}{end}';
    const lines = (await kubectl('get', 'crd', '-o', `jsonpath=${conditions}`)).trim().split('\n');
    expect(lines).toHaveLength(Object.keys(KINDS).length);
    for (const line of lines) {
      expect(line).toContain('Established');
      expect(line).not.toContain('NonStructuralSchema');
    }
  });

  it('describe every field', async () => {
    const document = await readDocument();
    for (const kind of Object.keys(KINDS)) {
      const schema = document.components.schemas[schemaName(kind)];
      const { spec, status } = schema?.properties ?? {};
      expect(undescribed(kind, { ...schema, properties: { spec: spec ?? {}, status: status ?? {} } })).toEqual([]);
    }
  });

  it.each(Object.values(KINDS))('explain $singular, its spec and its status', async ({ singular }) => {
    for (const path of [singular, `${singular}.spec`, `${singular}.status`, `${singular}.status.conditions`]) {
      const text = await kubectl('explain', path);
      expect(text).toContain('DESCRIPTION:');
      expect(text).not.toContain('<no description>');
      expect(text).not.toContain('<empty>');
    }
    expect(await kubectl('explain', singular, '--recursive')).toContain('observedGeneration');
  });
});

describe('the samples', () => {
  it('can be applied together, and again without a change', async () => {
    await kubectl('apply', '-f', SAMPLES);
    const again = await kubectl('apply', '-f', SAMPLES);
    expect(
      again
        .trim()
        .split('\n')
        .filter(line => !line.endsWith(' unchanged')),
    ).toEqual([]);
  });

  it('have additional samples for kinds that would affect the others', async () => {
    await kubectl('apply', '-f', join(SAMPLES, 'more'));
    const all = await kubectl('get', 'waas,waas-admin', '--all-namespaces', '-o', 'name');
    const kinds = new Set(all.split('\n').map(line => line.split('.')[0]));
    expect(kinds).toEqual(new Set(['', ...Object.values(KINDS).map(({ singular }) => singular)]));
  });

  it.each(Object.values(KINDS))('$kind prints its columns with -o wide', async kind => {
    const [version] = describeCrd(kind).spec.versions;
    const columns = ['Name', ...(version?.additionalPrinterColumns ?? []).map(({ name }) => name)];
    const [header = ''] = (await kubectl('get', ...kind.shortNames.slice(0, 1), '-A', '-o', 'wide')).split('\n');
    const printed = header
      .trim()
      .split(/\s+/)
      .filter(name => name !== 'NAMESPACE');
    expect(printed.join(' ')).toBe(columns.join(' ').toUpperCase());
  });

  it('do not print the address in the table', async () => {
    expect(await kubectl('get', 'intg', '-n', 'acme', '-o', 'wide')).not.toContain('@');
  });

  it('can be selected by integration and group key', async () => {
    const found = 'activation.sluice.dev/globex-customer-42\n';
    expect(await selectActivations('spec.integration=globex,spec.groupKey=customer-42')).toBe(found);
    expect(await selectActivations('spec.groupKey=customer-43')).toBe('');
  });
});

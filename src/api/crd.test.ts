import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { driftedFiles, OUT_OF_DATE, renderCrds } from '../../tools/generate/generate.ts';
import { describeCrd } from '../kube/crds.ts';
import type { buildCrd } from './crd.ts';
import type { KindDefinition } from './kind.ts';
import { KINDS } from './kinds/kinds.ts';

const ROOT = join(import.meta.dirname, '..', '..');

interface Node {
  [keyword: string]: unknown;
  properties?: Record<string, Node>;
  items?: Node;
}

/** All nodes below `node`, with their paths. */
function nodesOf(path: string, node: Node): { path: string; node: Node }[] {
  return [
    { path, node },
    ...Object.entries(node.properties ?? {}).flatMap(([name, child]) => nodesOf(`${path}.${name}`, child)),
    ...(node.items ? nodesOf(`${path}[]`, node.items) : []),
  ];
}

function schemaOf(kind: KindDefinition): Node {
  const crd: ReturnType<typeof buildCrd> = JSON.parse(JSON.stringify(describeCrd(kind)));
  const { spec, status } = crd.spec.versions[0]?.schema.openAPIV3Schema.properties ?? {};
  return { properties: { spec: { ...spec }, status: { ...status } } };
}

// What structural schemas may hold, of what zod writes. Everything else is refused by the API server, or ignored.
const KEYWORDS =
  'description type format enum default pattern minLength maxLength minimum maximum minItems maxItems items properties required'
    .split(' ')
    .concat('x-kubernetes-validations', 'x-kubernetes-list-type', 'x-kubernetes-list-map-keys');

const BOUNDS: Record<string, readonly string[]> = {
  object: ['properties'],
  array: ['maxItems'],
  string: ['maxLength', 'enum', 'format'],
  integer: ['maximum'],
  boolean: ['type'],
};

/** What is wrong with a node: unknown keywords, no description that is a sentence, no bound that CEL can count with. */
function faultsOf(node: Node): string[] {
  const type = String(node.type);
  return [
    ...Object.keys(node).filter(keyword => !KEYWORDS.includes(keyword)),
    ...(/.\.$/.test(String(node.description)) ? [] : ['no description']),
    ...(BOUNDS[type]?.some(bound => bound in node) ? [] : [`${type} without a bound`]),
    ...(type === 'array' && !('x-kubernetes-list-type' in node) ? ['list without a type'] : []),
  ];
}

it('finds faults', () => {
  const node = { type: 'string', anyOf: [], description: 'no sentence' };
  expect(faultsOf(node)).toEqual(['anyOf', 'no description', 'string without a bound']);
  expect(faultsOf({ type: 'array', maxItems: 1, description: 'A list.' })).toEqual(['list without a type']);
  expect(faultsOf({ description: 'Anything.' })).toEqual(['undefined without a bound']);
});

// Where the REST interface never writes: a schema default is owned by whoever applied first, and would block it.
const DEFAULTS: Record<string, readonly string[]> = {
  Account: ['Account.spec.plan', 'Account.spec.includedTokens'],
  Block: ['Block.spec.onUnblock'],
  CatalogStream: ['CatalogStream.spec.retention', 'CatalogStream.spec.deletionPolicy'],
  Subscription: ['Subscription.spec.ordering', 'Subscription.spec.deletionPolicy'],
};

describe.each(Object.values(KINDS))('$kind', kind => {
  const nodes = nodesOf(kind.kind, schemaOf(kind)).slice(1);

  it('is structural, described and bounded in every field', () => {
    const faults = nodes.flatMap(({ path, node }) => faultsOf(node).map(fault => `${path}: ${fault}`));
    expect(nodes.length).toBeGreaterThan(10);
    expect(faults).toEqual([]);
  });

  it('has defaults only where the REST interface never writes', () => {
    const defaults = nodes
      .filter(({ path, node }) => path !== `${kind.kind}.spec` && 'default' in node)
      .map(({ path }) => path);
    expect(defaults).toEqual([...(DEFAULTS[kind.kind] ?? []), `${kind.kind}.status`]);
  });
});

describe('the files in crds', () => {
  it('are the files that make generate writes, and there are no others', () => {
    const files = renderCrds();
    expect(driftedFiles(ROOT, files), OUT_OF_DATE).toEqual([]);
    expect(
      readdirSync(join(ROOT, 'crds'))
        .filter(name => name.endsWith('.yaml'))
        .map(name => `crds/${name}`)
        .toSorted(),
    ).toEqual(files.map(({ path }) => path).toSorted());
  });

  it('can be read back without changes', () => {
    const parsed = renderCrds().map(({ text }) => parse(text));
    expect(parsed).toEqual(JSON.parse(JSON.stringify(Object.values(KINDS).map(describeCrd))));
  });

  it('drift when they are missing or edited', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-crds-'));
    try {
      writeFileSync(join(folder, 'same.yaml'), 'a');
      writeFileSync(join(folder, 'edited.yaml'), 'b');
      const files = ['same', 'edited', 'missing'].map(name => ({ path: `${name}.yaml`, text: 'a' }));
      expect(driftedFiles(folder, files)).toEqual(['edited.yaml', 'missing.yaml']);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

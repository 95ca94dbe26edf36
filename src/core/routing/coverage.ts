import type { BlockSpec } from '../../api/kinds/block.ts';
import type { PackageSpec } from '../../api/kinds/package.ts';
import { finish, type Steps } from './steps.ts';

interface Covering<B> {
  readonly packages: readonly { readonly name: string; readonly spec: PackageSpec }[];
  readonly blocks: readonly B[];
}

/** Returns all Blocks for a stream and an integration, in their order. */
type Coverage<B> = (integration: string, stream: string) => readonly B[];

/** The Blocks of an integration that have the same target. Each of them has its position in the order. */
type Placed<B> = readonly (readonly [place: number, block: B])[];

/**
 * Returns all Blocks for a stream and an integration, where `covered(I,S) = block of S for I, or block of a package
 * that contains S for I`. Archived packages count too.
 */
export function coverage<B extends { readonly spec: BlockSpec }>(objects: Covering<B>): Coverage<B> {
  return finish(coverageSteps(objects));
}

/** Like `coverage`, but yields a piece for each package and each Block. */
export function* coverageSteps<B extends { readonly spec: BlockSpec }>(objects: Covering<B>): Steps<Coverage<B>> {
  const containing = new Map<string, Set<string>>();
  for (const { name, spec } of objects.packages) {
    yield;
    for (const stream of spec.streams ?? []) {
      const names = containing.get(stream) ?? new Set();
      containing.set(stream, names.add(name));
    }
  }
  // An integration may have thousands of Blocks, and thousands of subscriptions that need to be looked up.
  const byTarget = new Map<string, [number, B][]>();
  for (const [place, block] of objects.blocks.entries()) {
    yield;
    const { integration, target } = block.spec;
    const key = keyOf(integration, target.kind, target.name);
    const placed = byTarget.get(key);
    if (placed === undefined) byTarget.set(key, [[place, block]]);
    else placed.push([place, block]);
  }
  const of = (...target: Parameters<typeof keyOf>): Placed<B> => byTarget.get(keyOf(...target)) ?? [];
  return (integration, stream) => {
    const own = of(integration, 'CatalogStream', stream);
    const packages = containing.get(stream);
    const whole = packages === undefined ? [] : [...packages].flatMap(name => of(integration, 'Package', name));
    return [...own, ...whole].toSorted(([a], [b]) => a - b).map(([, block]) => block);
  };
}

function keyOf(integration: string, kind: BlockSpec['target']['kind'], name: string): string {
  return `${kind}\0${integration}\0${name}`;
}

/**
 * Returns the Blocks of an integration that cover a stream, in their order. Unlike `coverage`, this does not read the
 * streams of any package.
 *
 * @param packages the names of all packages that contain the stream
 */
export function coveringStream<B extends { readonly spec: Pick<BlockSpec, 'target'> }>(
  blocks: readonly B[],
  stream: string,
  packages: ReadonlySet<string>,
): B[] {
  return blocks.filter(({ spec: { target } }) =>
    target.kind === 'CatalogStream' ? target.name === stream : packages.has(target.name),
  );
}

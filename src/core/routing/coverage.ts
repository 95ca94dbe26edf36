import type { BlockSpec } from '../../api/kinds/block.ts';
import type { PackageSpec } from '../../api/kinds/package.ts';

/**
 * Returns all Blocks for a stream and an integration, where `covered(I,S) = block of S for I, or block of a package
 * that contains S for I`. Archived packages count too.
 */
export function coverage<B extends { readonly spec: BlockSpec }>(objects: {
  readonly packages: readonly { readonly name: string; readonly spec: PackageSpec }[];
  readonly blocks: readonly B[];
}): (integration: string, stream: string) => readonly B[] {
  const packages = new Map(objects.packages.map(each => [each.name, new Set(each.spec.streams ?? [])]));
  const byIntegration = Map.groupBy(objects.blocks, ({ spec }) => spec.integration);
  return (integration, stream) =>
    (byIntegration.get(integration) ?? []).filter(({ spec: { target } }) =>
      target.kind === 'CatalogStream' ? target.name === stream : packages.get(target.name)?.has(stream) === true,
    );
}

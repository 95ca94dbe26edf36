import { publicId } from '../../../core/ids/ids.ts';
import { coveringStream } from '../../../core/routing/coverage.ts';
import type { Steps } from '../../../time/slices.ts';
import type { Cached } from '../../caches/cached.ts';
import type { Caches } from '../../caches/caches.ts';
import type { OwnedIntegration } from '../../objects/ownership.ts';

/** If more packages than this are blocked for the integration, all packages are listed instead of reading each. */
const MOST_PACKAGES = 8;

type Reads = { readonly caches: Pick<Caches, 'by' | 'live' | 'listLive'> };
type CacheReads = Pick<Caches, 'by' | 'get'>;
type Pair = Pick<OwnedIntegration, 'producer' | 'name'>;

/** Returns the Blocks for the integration, according to the cache. */
function blocksOf({ by }: Pick<Caches, 'by'>, { producer, name }: Pair): readonly Cached<'Block'>[] {
  return by('Block', 'integrationId', publicId('Integration', producer, name));
}

/**
 * Returns those of the streams that a Block covers for the integration, according to the caches. Only reads the packages
 * that are blocked for the integration. Together, they can have a million streams.
 */
export function* coveredSteps(
  caches: CacheReads,
  integration: Pair,
  streams: ReadonlySet<string>,
): Steps<ReadonlySet<string>> {
  const covered = new Set<string>();
  const cover = (stream: string) => streams.has(stream) && covered.add(stream);
  for (const { spec } of blocksOf(caches, integration)) {
    const { kind, name } = spec.target;
    if (kind === 'CatalogStream') cover(name);
    else caches.get(kind, { namespace: integration.producer, name })?.spec.streams?.forEach(cover);
    yield;
  }
  return covered;
}

/**
 * Returns the Blocks that cover a stream for the integration, according to the caches. Does not read the streams of any
 * package.
 */
export function coveringInCaches(
  { caches }: { readonly caches: Pick<Caches, 'by'> },
  integration: Pair,
  stream: string,
): readonly Cached<'Block'>[] {
  const packages = caches.by('Package', 'stream', `${integration.producer}/${stream}`);
  const names = new Set(packages.map(({ metadata }) => metadata.name));
  return coveringStream(blocksOf(caches, integration), stream, names);
}

/** Returns true if one of these packages contains the stream, according to the API server. */
async function isInOneOf({ caches }: Reads, producer: string, names: readonly string[], stream: string) {
  const packages =
    names.length > MOST_PACKAGES
      ? (await caches.listLive('Package', producer)).filter(({ metadata }) => names.includes(metadata.name))
      : await Promise.all(names.map(name => caches.live('Package', { namespace: producer, name })));
  return packages.some(each => each?.spec.streams?.includes(stream) === true);
}

/** Returns true if the API server confirms that the Block still covers the stream. */
async function isConfirmed(reads: Reads, producer: string, { metadata, spec }: Cached<'Block'>, stream: string) {
  const { caches } = reads;
  const block = await caches.live('Block', { namespace: producer, name: metadata.name });
  // The fields of a Block are immutable, but it may have been replaced by another Block of the same name.
  if (block === undefined || block.metadata.uid !== metadata.uid) return false;
  const { kind, name } = spec.target;
  return kind === 'CatalogStream' || (await isInOneOf(reads, producer, [name], stream));
}

/**
 * Returns true if a Block covers a stream for the integration, according to the API server. A producer can have
 * thousands of Blocks, so this only reads those for the integration which block the stream or any package. If the
 * caches contain a Block that covers the stream, confirming this Block is sufficient.
 */
export async function isCoveredLive(reads: Reads, integration: Pair, stream: string): Promise<boolean> {
  const { caches } = reads;
  const { producer, name } = integration;
  const [known] = coveringInCaches(reads, integration, stream);
  if (known !== undefined && (await isConfirmed(reads, producer, known, stream))) return true;
  const own = { 'spec.integration': name };
  const lists = await Promise.all([
    caches.listLive('Block', producer, { ...own, 'spec.target.kind': 'CatalogStream', 'spec.target.name': stream }),
    caches.listLive('Block', producer, { ...own, 'spec.target.kind': 'Package' }),
  ]);
  const targets = lists.flat().flatMap(({ spec }) => (spec.integration === name ? [spec.target] : []));
  if (targets.some(target => target.kind === 'CatalogStream' && target.name === stream)) return true;
  const packages = new Set(targets.filter(({ kind }) => kind === 'Package').map(target => target.name));
  return packages.size > 0 && (await isInOneOf(reads, producer, [...packages], stream));
}

import type { Steps } from '../core/routing/steps.ts';

/** A group key that is open for an integration. */
export interface OpenKey {
  readonly groupKey: string;
  /** The time at which it was opened, in milliseconds. */
  readonly sinceMs: number;
}

/** The open group keys of each integration (`int_…`). There may be 100,000 of them. */
export interface OpenKeySource {
  /** If an integration does not have any open group keys, this may also be undefined. */
  readonly get: (integration: string) => readonly OpenKey[] | undefined;
  /** Reads the group keys in pieces. After that, `get` has nothing left to do. Not needed if they are in memory. */
  readonly load?: (integration: string) => Steps<void>;
}

/** Returns the open group keys of an integration, and reads them in pieces. */
export function* openKeysOf(source: OpenKeySource, integration: string): Steps<readonly OpenKey[]> {
  if (source.load !== undefined) yield* source.load(integration);
  return source.get(integration) ?? [];
}

import { AsyncLocalStorage } from 'node:async_hooks';
import { isDeepStrictEqual } from 'node:util';
import { type Redact, redactValue } from './redaction.ts';

/** An object as far as changes are concerned. */
interface Changed {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly spec: object;
}

/** A custom resource before and after a write. Undefined if it did not exist, or does not exist anymore. */
export interface Change {
  readonly kind: string;
  readonly before: Changed | undefined;
  readonly after: Changed | undefined;
}

const collected = new AsyncLocalStorage<Change[]>();

/** Runs a call, adding all changes that it makes to `changes`, even if it fails afterwards. */
export function collectChanges<T>(changes: Change[], run: () => Promise<T>): Promise<T> {
  return collected.run(changes, run);
}

/** Notes that the current call has changed an object. Does nothing outside of a call. */
export function noteChange(change: Change): void {
  collected.getStore()?.push(change);
}

type Fields = Readonly<Record<string, unknown>>;

/** Items of a list that the other one doesn't have. Lists can have a thousand items, of which one has changed. */
function difference(list: unknown, other: unknown): unknown {
  if (!Array.isArray(list) || !Array.isArray(other)) return list;
  const others = new Set(other.map(item => JSON.stringify(item)));
  return list.filter(item => !others.has(JSON.stringify(item)));
}

/**
 * Returns a change as it appears in an audit line: the fields of the spec that differ, before and after. Lists only
 * contain the items that differ. Null stands for an object that doesn't exist.
 */
export function describeChange({ kind, before, after }: Change, redact: Redact): object | undefined {
  const { name, namespace } = (after ?? before)?.metadata ?? {};
  const [old, current] = [before?.spec, after?.spec] as readonly (Fields | undefined)[];
  const fields = [...new Set([...Object.keys(old ?? {}), ...Object.keys(current ?? {})])].filter(
    field => !isDeepStrictEqual(old?.[field], current?.[field]),
  );
  if (fields.length === 0 && (before === undefined) === (after === undefined)) return undefined;
  const side = (own: Fields | undefined, other: Fields | undefined) =>
    own === undefined
      ? null
      : Object.fromEntries(
          fields
            .filter(field => own[field] !== undefined)
            .map(field => [field, redactValue(difference(own[field], other?.[field]), redact, field)]),
        );
  return {
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    before: side(old, current),
    after: side(current, old),
  };
}

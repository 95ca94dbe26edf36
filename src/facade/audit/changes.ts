import { AsyncLocalStorage } from 'node:async_hooks';
import { isDeepStrictEqual } from 'node:util';
import { MOST_CHANGED_ITEMS, type Redact, redactValue } from './redaction.ts';

/** The parts of an object used to find changes. */
interface Changed {
  readonly metadata: { readonly name: string; readonly namespace?: string | undefined };
  readonly spec: object;
}

/** A custom resource before and after a write. Undefined if the resource did not exist before or no longer exists. */
export interface Change {
  readonly kind: string;
  readonly before: Changed | undefined;
  readonly after: Changed | undefined;
}

const collected = new AsyncLocalStorage<Change[]>();

/** Runs a call and adds all of its changes to `changes`, even if the call fails later. */
export function collectChanges<T>(changes: Change[], run: () => Promise<T>): Promise<T> {
  return collected.run(changes, run);
}

/** Records that an object was changed by the current call. Does nothing if there is no current call. */
export function noteChange(change: Change): void {
  collected.getStore()?.push(change);
}

type Fields = Readonly<Record<string, unknown>>;

/**
 * The items of a list that are not included in the other list. A list can have a thousand items even if only one of
 * them has changed.
 */
function difference(list: unknown, other: unknown): unknown {
  if (!Array.isArray(list) || !Array.isArray(other)) return list;
  const others = new Set(other.map(item => JSON.stringify(item)));
  return list.filter(item => !others.has(JSON.stringify(item)));
}

/**
 * Returns a change in the format used for audit lines. Includes all different fields of the spec, before and after the
 * change. Lists only contain the items that differ. Null means that an object does not exist.
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
            .map(field => [
              field,
              redactValue(difference(own[field], other?.[field]), redact, field, MOST_CHANGED_ITEMS),
            ]),
        );
  return {
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    name,
    before: side(old, current),
    after: side(current, old),
  };
}

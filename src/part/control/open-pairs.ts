import type { RoutesChange } from '../../record/control-store.ts';
import { type OpenKey, openKeysOf } from '../../record/open-keys.ts';
import { inSlices, type Steps } from '../../time/slices.ts';
import type { OpenKeys } from './part-changes.ts';

/** The group keys of an integration which may be open in its parts. There are no others. */
interface Known {
  readonly fence: number;
  readonly groupKeys: Set<string>;
}

/** All group keys that are open in parts. Only known to a leader that has read and written all of them. */
export interface OpenPairs {
  /** Keeps track of a change to routes that `write` is writing to the parts. */
  readonly follow: (change: RoutesChange, write: (openKeys: OpenKeys) => Promise<void>) => Promise<void>;
  /** Returns true if a group key is certainly closed in all parts. */
  readonly isClosed: (fence: number, integration: string, groupKey: string) => boolean;
  /** Returns all group keys that may be open. Empty if unknown. */
  readonly of: (integration: string) => Iterable<string>;
  readonly opens: (integration: string, groupKey: string) => void;
  readonly closed: (integration: string, groupKey: string) => void;
}

export function createOpenPairs(): OpenPairs {
  const known = new Map<string, Known>();
  const opens = (integration: string, groupKey: string): void => {
    known.get(integration)?.groupKeys.add(groupKey);
  };
  return {
    async follow({ fence, have, want, isKnown, openKeys }, write) {
      const isIn = ({ integrations }: typeof want, integration: string) => Object.hasOwn(integrations, integration);
      // After a part has been read, it does not contain anything else. If an integration is new, there was nothing
      // before.
      const learnt = Object.keys(want.integrations).filter(each => !isKnown || !isIn(have, each));
      for (const integration of learnt) known.delete(integration);
      const read = new Map<string, readonly OpenKey[]>();
      const get = (integration: string): readonly OpenKey[] => {
        const last = read.get(integration);
        if (last !== undefined) return last;
        const keys = openKeys().get(integration) ?? [];
        read.set(integration, keys);
        // Note the open keys before they are written. If an Activation is deleted before its turn, its key must be
        // closed as well.
        for (const { groupKey } of keys) opens(integration, groupKey);
        return keys;
      };
      function* load(integration: string): Steps<void> {
        if (!read.has(integration)) yield* openKeysOf(openKeys(), integration);
      }
      await write(() => ({ get, load }));
      for (const integration of Object.keys(have.integrations)) {
        if (!isIn(want, integration)) known.delete(integration);
      }
      await inSlices(
        (function* () {
          for (const integration of learnt) {
            const groupKeys = read.get(integration)?.map(({ groupKey }) => groupKey);
            known.set(integration, { fence, groupKeys: new Set(groupKeys) });
            yield;
          }
        })(),
      );
    },
    isClosed(fence, integration, groupKey) {
      const of = known.get(integration);
      return of?.fence === fence && !of.groupKeys.has(groupKey);
    },
    of: integration => known.get(integration)?.groupKeys ?? [],
    opens,
    closed(integration, groupKey) {
      known.get(integration)?.groupKeys.delete(groupKey);
    },
  };
}

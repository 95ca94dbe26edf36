import type { DeliveryStatus } from '../api/delivery-status.ts';
import { DEFAULT_INSTANCE } from '../api/instance.ts';
import type { KindName } from '../api/kinds/kinds.ts';
import type { ObjectMeta } from '../kube/object.ts';

/** A custom resource which has the Sluice finalizer. */
export interface HeldObject {
  readonly kind: KindName;
  readonly metadata: ObjectMeta;
  readonly spec?: { readonly producer?: string; readonly stream?: string; readonly instance?: string };
  readonly status?: {
    readonly delivery?: DeliveryStatus | undefined;
    readonly conditions?: readonly { readonly type: string; readonly reason?: string | undefined }[] | undefined;
  };
}

/** The state of the undelivered events. */
export interface Undelivered {
  /** The streams with undelivered events in the format `workspace/stream`, sorted by name. */
  readonly streams: readonly string[];
  /** The reason why Redis could not be read. In this case, the streams are taken from the statuses. */
  readonly redisProblem?: string | undefined;
}

/** The backlog of a subscription without undelivered events. */
export const NO_BACKLOG = '0';
/** The reason for a stream that is being deleted but still has undelivered events. */
export const DRAINING = 'Draining';

/** The maximum number of streams to include in a message. */
const MOST_NAMED = 10;

/**
 * Returns the streams with undelivered events according to their status. The statuses are updated with a delay. Unless
 * a stream is being deleted, its status only includes events that have already been routed.
 */
export function undeliveredByStatus(objects: readonly HeldObject[]): string[] {
  const streams = new Set<string>();
  for (const { kind, metadata, spec, status } of objects) {
    if (kind === 'Subscription' && (status?.delivery?.backlog ?? NO_BACKLOG) !== NO_BACKLOG) {
      streams.add(`${spec?.producer}/${spec?.stream}`);
    }
    if (kind === 'CatalogStream' && status?.conditions?.some(({ reason }) => reason === DRAINING)) {
      streams.add(`${metadata.namespace}/${metadata.name}`);
    }
  }
  return [...streams].toSorted();
}

export const nameOf = (instance: string): string =>
  instance === DEFAULT_INSTANCE ? 'the installation without a name' : `the installation ${instance}`;

/**
 * Returns the lines to print if an installation does not have any objects with a finalizer. The lines name all other
 * installations with such objects because the name of this one may be missing.
 */
export function describeNothing(instance: string, held: ReadonlyMap<string, readonly unknown[]>): string[] {
  const others = [...held].filter(([other]) => other !== instance).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return [
    `There are no custom resources of ${nameOf(instance)} with a Sluice finalizer. There is nothing to do.`,
    ...others.map(([other, objects]) => {
      const setting = other === DEFAULT_INSTANCE ? 'unset SLUICE_INSTANCE' : `set SLUICE_INSTANCE=${other}`;
      return `Custom resources of ${nameOf(other)} with a finalizer: ${objects.length}. To remove these finalizers, ${setting}, and set SLUICE_NAMESPACE to the namespace of its controller.`;
    }),
  ];
}

/**
 * Decides whether to remove the finalizers and returns the lines to print.
 *
 * @param ignoreUndelivered whether to remove them even if there are undelivered events
 */
export function planUninstall(
  objects: readonly HeldObject[],
  { streams, redisProblem }: Undelivered,
  ignoreUndelivered: boolean,
): { readonly proceeds: boolean; readonly lines: readonly string[] } {
  const rest = streams.length - MOST_NAMED;
  const names = streams.length === 0 ? '' : `: ${streams.slice(0, MOST_NAMED).join(', ')}`;
  const lines = [
    `Custom resources with a finalizer of Sluice: ${objects.length}`,
    ...(redisProblem === undefined
      ? []
      : [`Redis cannot be read, so the next line is from the statuses, which may be older. ${redisProblem}`]),
    `Streams with undelivered events: ${streams.length}${names}${rest > 0 ? ` and ${rest} more` : ''}`,
  ];
  if (streams.length === 0 || ignoreUndelivered) return { proceeds: true, lines };
  return {
    proceeds: false,
    lines: [
      ...lines,
      'No changes were made because these events would no longer be delivered. Stop publishing events and wait until all events have been delivered. To uninstall Sluice without delivering these events, run sluice uninstall --ignore-undelivered in a pod of the controller, and then repeat your command, such as helm uninstall, within a minute. The events stay in Redis until you remove its data.',
    ],
  };
}

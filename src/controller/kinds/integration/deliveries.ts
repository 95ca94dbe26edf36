import type { Delivery } from './invitation.ts';

/** Which invitation of an integration: a new one, or that of a namesake, is another. */
export interface InvitationId {
  readonly uid: string;
  readonly issuedAt: string;
}

/** What this process has done with invitations and the statuses do not say yet. */
export interface Deliveries {
  /** @param key namespace/name of the integration */
  readonly of: (key: string, id: InvitationId) => Delivery | undefined;
  readonly note: (key: string, id: InvitationId, delivery: Delivery) => void;
  readonly forget: (key: string) => void;
}

/**
 * Deliveries on their way into the statuses: the integration's own worker alone writes those. Lost with the process: an
 * invitation whose `sentAt` was not written is sent again, with the same token.
 */
export function createDeliveries(): Deliveries {
  const known = new Map<string, InvitationId & { readonly delivery: Delivery }>();
  return {
    of: (key, { uid, issuedAt }) => {
      const found = known.get(key);
      return found?.uid === uid && found.issuedAt === issuedAt ? found.delivery : undefined;
    },
    note: (key, id, delivery) => known.set(key, { ...id, delivery }),
    forget: key => known.delete(key),
  };
}

import type { Delivery } from './invitation.ts';

/**
 * Identifies one invitation. The identifier is different for each new invitation and for integrations that are created
 * again with the same name.
 */
export interface InvitationId {
  readonly uid: string;
  readonly issuedAt: string;
}

/** Stores the deliveries of invitations by this process that are not included in a status yet. */
export interface Deliveries {
  /** @param key the namespace and the name of the integration, separated by a slash */
  readonly of: (key: string, id: InvitationId) => Delivery | undefined;
  readonly note: (key: string, id: InvitationId, delivery: Delivery) => void;
  readonly forget: (key: string) => void;
}

/**
 * Creates a store for deliveries that are waiting to be added to the status of their integration. The store is lost
 * when the process exits. If this happens, an invitation without `sentAt` is sent again with the same token.
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

import type { Delivery } from './invitation.ts';

/**
 * Identifies an invitation. A new invitation, or an integration re-created under the same name, will have a different
 * identifier.
 */
export interface InvitationId {
  readonly uid: string;
  readonly issuedAt: string;
}

/** Contains the invitation deliveries of this process which are not included in a status yet. */
export interface Deliveries {
  /** @param key namespace and name of the integration, separated by a slash */
  readonly of: (key: string, id: InvitationId) => Delivery | undefined;
  readonly note: (key: string, id: InvitationId, delivery: Delivery) => void;
  readonly forget: (key: string) => void;
}

/**
 * Creates a store for deliveries which will be added to the status of their integration. The store loses its content
 * when the process exits. In this case, all invitations without a `sentAt` will be resent using the same token.
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

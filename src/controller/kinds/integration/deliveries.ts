import type { Delivery } from './invitation.ts';

/**
 * Identifies an invitation. A new invitation, or an integration re-created under the same name, will have a different
 * identifier.
 */
export interface InvitationId {
  readonly uid: string;
  readonly issuedAt: string;
}

/** Contains the deliveries of invitations by this process which are not included in a status yet. */
export interface Deliveries {
  /** @param key namespace and name of the integration, separated by a slash */
  readonly of: (key: string, id: InvitationId) => Delivery | undefined;
  readonly note: (key: string, id: InvitationId, delivery: Delivery) => void;
  readonly forget: (key: string) => void;
}

/**
 * Creates a store for deliveries that should be added to the status of their integration. If the process exits, its
 * content is lost. In this case, all invitations that don't have a `sentAt` will be sent again using the same token.
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

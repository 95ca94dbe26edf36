import type { Delivery } from './invitation.ts';

/** Identifies one invitation: a new one, or one of another integration with the same name, differs. */
export interface InvitationId {
  readonly uid: string;
  readonly issuedAt: string;
}

/** Invitations that this process has sent, or tried to, and that no status shows yet. */
export interface Deliveries {
  /** @param key namespace/name of the integration */
  readonly of: (key: string, id: InvitationId) => Delivery | undefined;
  readonly note: (key: string, id: InvitationId, delivery: Delivery) => void;
  readonly forget: (key: string) => void;
}

/**
 * Creates the memory of deliveries until the integration's own worker writes them to its status. It is lost with the
 * process: an invitation without `sentAt` is then sent again, with the same token.
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

import type { Owner } from '../../api/owner.ts';
import type { Identity } from '../auth/identity.ts';
import { rolesOf } from '../auth/ownership.ts';

/** The entry that gave a caller access, and its list of owners. */
export interface AccessGiven {
  readonly role: string;
  /** Object with the list of owners. */
  readonly of: 'workspace' | 'account';
  readonly by: 'subject' | 'group' | 'client';
}

interface Owned {
  readonly spec: { readonly owners?: readonly Owner[] | undefined };
}

/**
 * Returns the entry with the strongest role of the caller. If several entries have this role, the first entry is used.
 * Workspace entries are checked before account entries.
 */
export function accessGiven(
  identity: Identity,
  workspace: Owned | undefined,
  account: Owned | undefined,
): AccessGiven | undefined {
  const entries = [
    ...(workspace?.spec.owners ?? []).map(owner => ({ owner, of: 'workspace' as const })),
    ...(account?.spec.owners ?? []).map(owner => ({ owner, of: 'account' as const })),
  ];
  const given = entries.flatMap(({ owner, of }) =>
    rolesOf(identity, [owner]).map(role => ({ role, of, by: byOf(owner) })),
  );
  return STRENGTH.map(strongest => given.find(({ role }) => role === strongest)).find(found => found !== undefined);
}

const STRENGTH: readonly string[] = ['Owner', 'Admin', 'Viewer'];

function byOf({ subject, group }: Owner): AccessGiven['by'] {
  if (subject !== undefined) return 'subject';
  return group === undefined ? 'client' : 'group';
}

import type { Owner } from '../../api/owner.ts';
import type { Identity } from './identity.ts';

export type Role = Owner['role'];

/** What is read of a Workspace. */
interface OwnedWorkspace {
  readonly spec: { readonly account: string; readonly owners?: readonly Owner[] | undefined };
}

/** What is read of an Account. */
interface OwningAccount {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly owners?: readonly Owner[] | undefined };
}

/** The roles that a list of owners gives to somebody; each at most once. */
export function rolesOf(identity: Identity, owners: readonly Owner[] = []): readonly Role[] {
  return [...new Set(owners.filter(owner => isMeant(owner, identity)).map(({ role }) => role))];
}

/**
 * What somebody may do for a workspace: `Owner` everything, `Admin` everything but changing owners, undefined nothing.
 * The owners of its Account count as its own; an Account that is not the one it names counts for nothing.
 */
export function mayActFor(
  identity: Identity,
  workspace: OwnedWorkspace,
  account: OwningAccount | undefined,
): Role | undefined {
  const theirs = account?.metadata.name === workspace.spec.account ? account.spec.owners : undefined;
  return strongest([...rolesOf(identity, workspace.spec.owners), ...rolesOf(identity, theirs)]);
}

/** What somebody may do for an account and for all its workspaces. */
export function mayActForAccount(identity: Identity, account: OwningAccount): Role | undefined {
  return strongest(rolesOf(identity, account.spec.owners));
}

function strongest(roles: readonly Role[]): Role | undefined {
  return (['Owner', 'Admin'] as const).find(role => roles.includes(role));
}

/**
 * Byte by byte, and exactly one of subject, group and client: an entry with none or with several is refused by the API
 * server, and one that got in nevertheless names nobody.
 */
function isMeant(owner: Owner, { issuer, subject, groups, client }: Identity): boolean {
  const given = [owner.subject, owner.group, owner.client].filter(each => each !== undefined);
  if (given.length !== 1 || owner.issuer !== issuer) return false;
  if (owner.subject !== undefined) return owner.subject === subject;
  if (owner.group !== undefined) return groups.includes(owner.group);
  return client !== undefined && owner.client === client;
}

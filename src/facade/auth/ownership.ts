import type { Owner } from '../../api/owner.ts';
import type { Identity } from './identity.ts';

type Role = Owner['role'];

/** The fields of a Workspace that determine its owners. */
interface OwnedWorkspace {
  readonly spec: { readonly account: string; readonly owners?: readonly Owner[] | undefined };
}

/** The fields of an Account that determine its owners. */
interface OwningAccount {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly owners?: readonly Owner[] | undefined };
}

/** Returns the roles that a list of owners assigns to an identity. Each role is returned at most once. */
export function rolesOf(identity: Identity, owners: readonly Owner[] = []): readonly Role[] {
  return [...new Set(owners.filter(owner => isMeant(owner, identity)).map(({ role }) => role))];
}

/**
 * Returns the role of an identity for a workspace. An `Owner` may do everything, and an `Admin` may do everything
 * except change the owners. Returns undefined if the identity does not have a role. The owners of the workspace's
 * Account are included.
 */
export function mayActFor(
  identity: Identity,
  workspace: OwnedWorkspace,
  account: OwningAccount | undefined,
): Role | undefined {
  const theirs = account?.metadata.name === workspace.spec.account ? account.spec.owners : undefined;
  return strongest([...rolesOf(identity, workspace.spec.owners), ...rolesOf(identity, theirs)]);
}

/** Returns the role of an identity for an account and all of its workspaces. */
export function mayActForAccount(identity: Identity, account: OwningAccount): Role | undefined {
  return strongest(rolesOf(identity, account.spec.owners));
}

function strongest(roles: readonly Role[]): Role | undefined {
  return (['Owner', 'Admin'] as const).find(role => roles.includes(role));
}

/**
 * Returns true if the owner matches the identity. Exactly one of subject, group and client is compared byte by byte.
 * Entries with several or no values are refused by the API server, and they do not match here either.
 */
function isMeant(owner: Owner, { issuer, subject, groups, client }: Identity): boolean {
  const given = [owner.subject, owner.group, owner.client].filter(each => each !== undefined);
  if (given.length !== 1 || owner.issuer !== issuer) return false;
  if (owner.subject !== undefined) return owner.subject === subject;
  if (owner.group !== undefined) return groups.includes(owner.group);
  return client !== undefined && owner.client === client;
}

import type { Owner } from '../../api/owner.ts';
import type { Identity } from './identity.ts';

type Role = Owner['role'];

/** Workspace fields that determine its owners. */
interface OwnedWorkspace {
  readonly spec: { readonly account: string; readonly owners?: readonly Owner[] | undefined };
}

/** Account fields that determine its owners. */
interface OwningAccount {
  readonly metadata: { readonly name: string };
  readonly spec: { readonly owners?: readonly Owner[] | undefined };
}

/** Returns the roles assigned to an identity by a list of owners, without duplicates. */
export function rolesOf(identity: Identity, owners: readonly Owner[] = []): readonly Role[] {
  return [...new Set(owners.filter(owner => isMeant(owner, identity)).map(({ role }) => role))];
}

/**
 * Returns the role of an identity for a workspace, taking owners of the workspace's Account into account. An `Owner`
 * may do everything. The same goes for an `Admin`, except for changing the owners. Undefined if the identity has no
 * role.
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
 * Returns true if the owner matches the identity, comparing exactly one of subject, group, and client byte by byte.
 * Entries with several or no values never match; the API server should already have refused those.
 */
function isMeant(owner: Owner, { issuer, subject, groups, client }: Identity): boolean {
  const given = [owner.subject, owner.group, owner.client].filter(each => each !== undefined);
  if (given.length !== 1 || owner.issuer !== issuer) return false;
  if (owner.subject !== undefined) return owner.subject === subject;
  if (owner.group !== undefined) return groups.includes(owner.group);
  return client !== undefined && owner.client === client;
}

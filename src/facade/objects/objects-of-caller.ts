import type { Identity } from '../auth/identity.ts';
import { mayActFor, mayActForAccount, ownerKeysOf, type Role } from '../auth/ownership.ts';
import type { Cached } from '../caches/cached.ts';
import type { Caches } from '../caches/caches.ts';

/** Object, and the role that the caller has for it. */
type WithRole<T> = readonly [object: T, role: Role];

function isStaying({ metadata }: Cached<'Account' | 'Workspace'>): boolean {
  return metadata.deletionTimestamp === undefined;
}

/** Returns the objects with an entry for the caller in their list of owners, without duplicates. */
function namedIn<K extends 'Account' | 'Workspace'>({ by }: Pick<Caches, 'by'>, kind: K, identity: Identity) {
  return new Set(ownerKeysOf(identity).flatMap(key => by(kind, 'owner', key)));
}

/** Returns the accounts that the caller has a role for. Only reads these accounts. */
export function accountsOf(caches: Pick<Caches, 'by'>, identity: Identity): WithRole<Cached<'Account'>>[] {
  return [...namedIn(caches, 'Account', identity)].filter(isStaying).flatMap(account => {
    const role = mayActForAccount(identity, account);
    return role === undefined ? [] : [[account, role] as const];
  });
}

/** Returns the workspaces that the caller has a role for. Only reads these workspaces, and their accounts. */
export function workspacesOf(caches: Pick<Caches, 'by' | 'get'>, identity: Identity): WithRole<Cached<'Workspace'>>[] {
  const found = namedIn(caches, 'Workspace', identity);
  for (const { metadata } of namedIn(caches, 'Account', identity)) {
    for (const workspace of caches.by('Workspace', 'account', metadata.name)) found.add(workspace);
  }
  return [...found].filter(isStaying).flatMap(workspace => {
    const role = mayActFor(identity, workspace, caches.get('Account', { name: workspace.spec.account }));
    return role === undefined ? [] : [[workspace, role] as const];
  });
}

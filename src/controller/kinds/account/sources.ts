import type { Caches } from '../../caches/caches.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources that are used for the keys of accounts. If an account is being deleted, it is enqueued when one
 * of its workspaces changes, because it can be removed after the last workspace is gone.
 */
export function accountSources(caches: Pick<Caches, 'Account' | 'Workspace'>): readonly KeySource[] {
  const isDeleting = (account: string) => caches.Account.store.get(account)?.metadata.deletionTimestamp !== undefined;
  return [
    keysFrom(caches.Workspace, (old, current) =>
      [old, current].flatMap(workspace => workspace?.spec.account ?? []).filter(isDeleting),
    ),
  ];
}

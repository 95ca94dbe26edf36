import type { Caches } from '../../caches/caches.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for account keys. An account that is being deleted is enqueued when one of its workspaces changes,
 * because the last one to go lets it go as well.
 */
export function accountSources(caches: Pick<Caches, 'Account' | 'Workspace'>): readonly KeySource[] {
  const isDeleting = (account: string) => caches.Account.store.get(account)?.metadata.deletionTimestamp !== undefined;
  return [
    keysFrom(caches.Workspace, (old, current) =>
      [old, current].flatMap(workspace => workspace?.spec.account ?? []).filter(isDeleting),
    ),
  ];
}

import type { Caches } from '../../caches/caches.ts';
import { type KeySource, keysFrom } from '../../engine/keyed-controller.ts';

/**
 * Returns the sources for account keys. When a workspace changes, its account is enqueued if it is being deleted
 * because it can be removed along with its last workspace.
 */
export function accountSources(caches: Pick<Caches, 'Account' | 'Workspace'>): readonly KeySource[] {
  const isDeleting = (account: string) => caches.Account.store.get(account)?.metadata.deletionTimestamp !== undefined;
  return [
    keysFrom(caches.Workspace, (old, current) =>
      [old, current].flatMap(workspace => workspace?.spec.account ?? []).filter(isDeleting),
    ),
  ];
}

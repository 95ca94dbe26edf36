import type { IngressKey } from '../../../api/kinds/workspace.ts';
import { FIELD_MANAGER } from '../../../api/well-known.ts';
import { Refusal } from '../../../http/refusal.ts';
import { managersOfItem } from '../../../kube/managed-fields.ts';
import type { Cached } from '../../caches/cached.ts';
import { fieldManaged } from '../../caches/kube-failures.ts';
import type { Facade } from '../../objects/facade.ts';

const MOST_KEYS = 16;
const MANAGER = FIELD_MANAGER.facadeKeys;

function managed(id: string, managers: readonly string[]): Refusal {
  const by = managers.join(', ') || 'another field manager';
  return fieldManaged([{ pointer: '/spec/ingressKeys', detail: `spec.ingressKeys of id ${id} is managed by ${by}` }]);
}

/**
 * Changes the keys managed by REST. Keys of other managers are not affected. Since each write contains all of our keys,
 * it is rejected if the object has changed since it was read.
 *
 * @param change maps the current keys to the new ones. Undefined if there are no changes
 */
async function editKeys(
  { caches, writer }: Facade,
  name: string,
  change: (workspace: Cached<'Workspace'>, own: readonly IngressKey[]) => readonly IngressKey[] | undefined,
): Promise<Cached<'Workspace'>> {
  return writer.edit(async () => {
    const before = await caches.live('Workspace', { name });
    if (before === undefined || before.metadata.deletionTimestamp !== undefined) throw new Refusal('forbidden');
    const keys = before.spec.ingressKeys ?? [];
    const own = keys.filter(({ id }) => managersOfItem(before, 'ingressKeys', id).includes(MANAGER));
    const wanted = change(before, own);
    if (wanted === undefined) return before;
    const ingressKeys = wanted.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    // Leave the concern empty: several managers own items in this list, and items with different ids don't conflict.
    return writer.apply(
      'Workspace',
      { name },
      { manager: MANAGER, before, concern: [], spec: { ingressKeys }, exactly: true },
    );
  }, `Workspace/${name}/ingressKeys`);
}

/**
 * Adds a new key. Does nothing if our own key with this id and hash exists.
 *
 * @throws Refusal 409 `ingress_key_exists`, or 422 if there would be more than `MOST_KEYS`
 */
export async function addIngressKey(facade: Facade, name: string, key: IngressKey): Promise<Cached<'Workspace'>> {
  return editKeys(facade, name, ({ spec: { ingressKeys = [] } }, own) => {
    // An interrupted call has added this key. Only a call with the same Idempotency-Key results in the same hash.
    if (own.some(({ id, sha256 }) => id === key.id && sha256 === key.sha256)) return undefined;
    if (ingressKeys.some(({ id }) => id === key.id)) throw new Refusal('ingress_key_exists');
    if (ingressKeys.length >= MOST_KEYS) {
      throw new Refusal(
        'invalid_request',
        `A workspace can have at most ${MOST_KEYS} ingress keys. Delete a key first.`,
      );
    }
    return [...own, key];
  });
}

/**
 * Removes a key and returns the workspace. The removal may not have taken effect yet.
 *
 * @throws Refusal 409 `field_managed`
 */
export async function removeIngressKey(facade: Facade, name: string, id: string): Promise<Cached<'Workspace'>> {
  const left = await editKeys(facade, name, (workspace, own) => {
    if (own.some(key => key.id === id)) return own.filter(key => key.id !== id);
    if (workspace.spec.ingressKeys?.some(key => key.id === id)) {
      throw managed(id, managersOfItem(workspace, 'ingressKeys', id));
    }
    return undefined;
  });
  // Another manager owns the key as well, so it still exists.
  if (left.spec.ingressKeys?.some(key => key.id === id)) throw managed(id, managersOfItem(left, 'ingressKeys', id));
  return left;
}

import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Cached } from '../caches/cached.ts';

/**
 * Refuses changes in a paused workspace, where only calls that close a resource take effect.
 *
 * @throws Refusal 409 `workspace_paused`
 */
export function assertNotPaused(...workspaces: (Cached<'Workspace'> | undefined)[]): void {
  if (workspaces.some(workspace => workspace?.metadata.annotations?.[PAUSED_ANNOTATION] === 'true')) {
    throw new Refusal('workspace_paused');
  }
}

import { PAUSED_ANNOTATION } from '../../api/well-known.ts';
import { Refusal } from '../../http/refusal.ts';
import type { Cached } from './cached.ts';

/**
 * Rejects changes in a paused workspace. Only calls that close a gate can be in force. @throws Refusal 409
 * `workspace_paused`
 */
export function assertNotPaused(...workspaces: (Cached<'Workspace'> | undefined)[]): void {
  if (workspaces.some(workspace => workspace?.metadata.annotations?.[PAUSED_ANNOTATION] === 'true')) {
    throw new Refusal('workspace_paused');
  }
}

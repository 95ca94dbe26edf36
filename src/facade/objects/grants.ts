import type { Cached } from './cached.ts';

/** The fields of an Integration that determine its state. */
export type Grant = Pick<Cached<'Integration'>, 'spec' | 'status'>;

/**
 * Returns what a workspace sees of an Integration that it was once granted, after the producer has deleted it or granted
 * it to another workspace.
 */
export function endedGrant(workspace: string): Grant {
  return { spec: { workspace, revoked: true } };
}

/** Returns true if the Integration exists and grants access to the workspace. */
export function isGrantedTo<I extends Cached<'Integration'>>(
  integration: I | undefined,
  workspace: string,
): integration is I {
  return integration?.spec.workspace === workspace;
}

import { isReservedWorkspaceName } from '../../api/kinds/workspace.ts';

/** Returns what an object says in a namespace that no Workspace owns, with what to change. */
export function missingWorkspaceMessage(namespace: string): string {
  return isReservedWorkspaceName(namespace)
    ? `namespace ${namespace} cannot become a workspace; did you forget -n <workspace>?`
    : `no Workspace named ${namespace} exists yet; create it, or move the object to the namespace of a workspace`;
}

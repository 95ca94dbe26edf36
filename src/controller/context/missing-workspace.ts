import { isReservedWorkspaceName } from '../../api/kinds/workspace.ts';

/** Returns the message for an object in a namespace that is not owned by a Workspace. */
export function missingWorkspaceMessage(namespace: string): string {
  return isReservedWorkspaceName(namespace)
    ? `namespace ${namespace} cannot be a workspace. If -n <workspace> is missing, add it`
    : `no Workspace owns namespace ${namespace}. Create Workspace ${namespace}, or check its Ready condition if it exists, or move the object to the namespace of a workspace`;
}

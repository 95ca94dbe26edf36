import type { KubeClient } from '../client.ts';
import type { Resource } from '../resource.ts';

const SELF_REVIEWS: Resource = {
  group: 'authentication.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
};

const SERVICE_ACCOUNT = 'system:serviceaccount:';

/**
 * Returns the name of the Kubernetes user used by this process, e.g.
 * `system:serviceaccount:sluice-system:sluice-controller`.
 */
export async function readOwnUser(client: Pick<KubeClient, 'create'>, signal?: AbortSignal): Promise<string> {
  const review = await client.create<{ status?: { userInfo?: { username?: string } } }>(
    SELF_REVIEWS,
    { name: '' },
    {},
    { signal },
  );
  return review.status?.userInfo?.username ?? '';
}

export function isServiceAccount(user: string): boolean {
  return user.startsWith(SERVICE_ACCOUNT);
}

/** Returns this user as a subject that can be used in a RoleBinding. */
export function subjectOf(user: string): object {
  if (!isServiceAccount(user)) return { kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: user };
  const [namespace, name] = user.slice(SERVICE_ACCOUNT.length).split(':');
  return { kind: 'ServiceAccount', namespace, name };
}

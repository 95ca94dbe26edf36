import type { Logger } from '../../telemetry/log.ts';
import type { Impairment } from '../../telemetry/role-health.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import type { KubeClient } from '../client.ts';
import type { Resource } from '../resource.ts';
import type { PolicyRule } from './rights.ts';

const REVIEWS: Resource = {
  group: 'authorization.k8s.io',
  version: 'v1',
  kind: 'SelfSubjectAccessReview',
  plural: 'selfsubjectaccessreviews',
  namespaced: false,
};

/** A permission in the format of a SelfSubjectAccessReview. */
interface Right {
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  readonly subresource: string | undefined;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
}

/** A role's rules. The rules apply either to the whole cluster or to a single namespace. */
export interface NeededRole {
  /** The role name in `config/rbac`. */
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  readonly namespace?: string;
}

/** Permissions, by the role that contains them. */
type Asked = readonly { readonly role: NeededRole; readonly rights: readonly Right[] }[];

const ASKED_AT_ONCE = 8;
/**
 * The delay before checking a missing permission again, in milliseconds. The authorizer may not have processed a new
 * binding yet.
 */
const ASK_AGAIN_MS = 2_000;
const MISSING_EVERY_MS = 10_000;
const ALL_EVERY_MS = 600_000;
/** The shortest interval between two checks of all permissions because a request was refused. */
const REFUSED_EVERY_MS = 60_000;

/** Returns all permissions of a role. */
export function rightsOf({ rules, namespace }: NeededRole): Right[] {
  return rules.flatMap(({ apiGroups, resources, resourceNames = [undefined], verbs }) =>
    apiGroups.flatMap(group =>
      resources.flatMap(path => {
        const [resource = '', subresource] = path.split('/');
        return resourceNames.flatMap(name =>
          verbs.map(verb => ({ verb, group, resource, subresource, name, namespace })),
        );
      }),
    ),
  );
}

/** RightsWatch checks whether the permissions required by a role have been granted. */
interface RightsWatch {
  readonly impairments: () => readonly Impairment[];
  /**
   * Checks the permissions until `stop` is aborted. The permissions are checked more often while some are missing, and
   * soon after a request was refused.
   */
  readonly run: (stop: AbortSignal) => Promise<void>;
}

export function createRightsWatch(options: {
  readonly client: Pick<KubeClient, 'create' | 'refusals'>;
  readonly roles: readonly NeededRole[];
  readonly clock: Clock;
  readonly log: Logger;
}): RightsWatch {
  const { client, roles, clock, log } = options;
  let missing: Asked = [];

  async function isGranted(right: Right, signal: AbortSignal): Promise<boolean> {
    const body = { spec: { resourceAttributes: right } };
    const answer = await client.create<{ status?: { allowed?: boolean } }>(REVIEWS, { name: '' }, body, { signal });
    return answer.status?.allowed !== false;
  }

  async function refusedOf(rights: readonly Right[], signal: AbortSignal): Promise<Right[]> {
    const refused: Right[] = [];
    for (let from = 0; from < rights.length; from += ASKED_AT_ONCE) {
      const some = rights.slice(from, from + ASKED_AT_ONCE);
      const granted = await Promise.all(some.map(right => isGranted(right, signal)));
      refused.push(...some.filter((_, index) => !granted[index]));
    }
    return refused;
  }

  async function ask(asked: Asked, signal: AbortSignal): Promise<Asked> {
    const found = [];
    for (const { role, rights } of asked) {
      const refused = await refusedOf(rights, signal);
      if (refused.length > 0) found.push({ role, rights: refused });
    }
    return found;
  }

  /** Checks the permissions a single time. Returns the time until the next check. */
  async function look(stop: AbortSignal): Promise<number> {
    if (missing.length === 0) {
      const first = await ask(
        roles.map(role => ({ role, rights: rightsOf(role) })),
        stop,
      );
      if (first.length === 0) return ALL_EVERY_MS;
      await sleep(clock, ASK_AGAIN_MS, stop);
      missing = await ask(first, stop);
    } else {
      missing = await ask(missing, stop);
    }
    return missing.length === 0 ? ALL_EVERY_MS : MISSING_EVERY_MS;
  }

  /** Waits until the next check is due. */
  async function pause(ms: number, refusals: number, stop: AbortSignal): Promise<void> {
    const beganMs = clock.nowMs();
    for (let passedMs = 0; passedMs < ms && !stop.aborted; passedMs = clock.nowMs() - beganMs) {
      if (passedMs >= REFUSED_EVERY_MS && client.refusals() !== refusals) return;
      await sleep(clock, Math.min(MISSING_EVERY_MS, ms - passedMs), stop);
    }
  }

  return {
    run: async stop => {
      while (!stop.aborted) {
        const refusals = client.refusals();
        let pauseMs = MISSING_EVERY_MS;
        try {
          pauseMs = await look(stop);
        } catch (error) {
          log.debug({ err: error as Error }, 'failed to check the permissions of this role, retrying');
        }
        await pause(pauseMs, refusals, stop);
      }
    },
    impairments: () => impairmentsOf(missing),
  };
}

function impairmentsOf(missing: Asked): readonly Impairment[] {
  if (missing.length === 0) return [];
  const descriptions = missing.map(({ role, rights }) => {
    const kind = role.namespace === undefined ? 'ClusterRole' : 'Role';
    const where = role.namespace === undefined ? '' : ` in ${role.namespace}`;
    return `${sayRights(rights)}: bind the ${kind} ${role.name}${where}`;
  });
  const message = `Kubernetes does not grant ${descriptions.join('; ')} of config/rbac to the user of KUBECONFIG or to the service account of the pod`;
  return [{ reason: 'Forbidden', cause: 'settings', message: `${message}.` }];
}

const MOST_NAMED = 5;

function sayRights(rights: readonly Right[]): string {
  const named = rights.slice(0, MOST_NAMED).map(({ verb, group, resource, subresource }) => {
    const path = `${resource}${group === '' ? '' : `.${group}`}`;
    return `${verb} ${path}${subresource === undefined ? '' : `/${subresource}`}`;
  });
  const rest = rights.length - named.length;
  return [...new Set(named)].join(', ') + (rest > 0 ? ` and ${rest} more` : '');
}

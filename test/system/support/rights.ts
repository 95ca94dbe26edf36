import { request } from 'undici';
import { openCredentials } from '../../../src/kube/credentials/credentials.ts';
import { systemClock } from '../../../src/time/clock.ts';

/** The caller, as identified by the API server, without `system:authenticated`. */
export interface Subject {
  readonly user: string;
  readonly groups?: readonly string[];
}

/** A resource in the notation of RBAC, such as `subscriptions.sluice.dev/status` or `secrets`. */
export interface Question {
  readonly verb: string;
  readonly resource: string;
  /** The namespace. Undefined for the whole cluster. */
  readonly namespace?: string | undefined;
  readonly name?: string | undefined;
}

/** Queries the API server's authorizer. */
export interface Authorizer {
  readonly may: (subject: Subject, question: Question) => Promise<boolean>;
  /** Returns the allowed combinations of these verbs and resources: the verbs by resource, in the given order. */
  readonly rightsOf: (
    subject: Subject,
    asked: { readonly resources: readonly string[]; readonly verbs: readonly string[]; readonly namespace?: string },
  ) => Promise<Record<string, string>>;
  readonly close: () => Promise<void>;
}

export function openAuthorizer(kubeconfig: string): Authorizer {
  const credentials = openCredentials({ kubeconfig }, systemClock.nowMs);
  const url = `${credentials.server}/apis/authorization.k8s.io/v1/subjectaccessreviews`;

  async function may({ user, groups = [] }: Subject, { verb, resource, namespace, name }: Question): Promise<boolean> {
    const [path = '', subresource] = resource.split('/');
    const [plural, ...group] = path.split('.');
    const attributes = { verb, resource: plural, group: group.join('.'), subresource, namespace, name };
    const { headers, calls } = await credentials.access();
    const answer = await request(url, {
      method: 'POST',
      dispatcher: calls,
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user, groups: [...groups, 'system:authenticated'], resourceAttributes: attributes },
      }),
    });
    const { status } = (await answer.body.json()) as { status?: { allowed?: boolean } };
    if (status?.allowed === undefined)
      throw new Error(`the API server did not return a decision: ${answer.statusCode}`);
    return status.allowed;
  }

  return {
    may,
    rightsOf: async (subject, { resources, verbs, namespace }) => {
      const judged = await Promise.all(
        resources.map(async resource => {
          const allowed = await Promise.all(verbs.map(verb => may(subject, { verb, resource, namespace })));
          return [resource, verbs.filter((_, index) => allowed[index]).join(' ')] as const;
        }),
      );
      return Object.fromEntries(judged.filter(([, allowed]) => allowed !== ''));
    },
    close: credentials.close,
  };
}

import { setTimeout as delay } from 'node:timers/promises';
import type { Cluster } from '../kubernetes/cluster.ts';
import { ARGOCD_NAMESPACE } from './install.ts';

type Access = Pick<Cluster, 'kubectl'>;

/** An object that an Application manages. */
export interface ManagedResource {
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
  readonly status?: string;
  readonly health?: { readonly status?: string; readonly message?: string };
}

/** An Application of Argo CD. */
export interface Application {
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly sync?: { readonly status: string; readonly revision?: string };
    readonly health?: { readonly status?: string; readonly message?: string };
    readonly conditions?: readonly { readonly type: string; readonly message: string }[];
    readonly history?: readonly { readonly id: number; readonly revision: string }[];
    readonly operationState?: {
      readonly phase: string;
      readonly message?: string;
      readonly startedAt: string;
      readonly finishedAt?: string;
      readonly syncResult?: { readonly revision?: string };
    };
    readonly resources?: readonly ManagedResource[];
  };
}

async function succeed({ kubectl }: Access, args: readonly string[], stdin = ''): Promise<string> {
  const { code, stdout, stderr } = await kubectl([...args, '--namespace', ARGOCD_NAMESPACE], { stdin });
  if (code !== 0) throw new Error(`kubectl ${args.join(' ')}: ${stderr}`);
  return stdout;
}

export async function applyApplication(cluster: Access, application: Application): Promise<void> {
  await succeed(cluster, ['apply', '--server-side', '-f', '-'], JSON.stringify(application));
}

/** Returns an Application, or undefined if it does not exist. */
export async function readApplication(cluster: Access, name: string): Promise<Application | undefined> {
  const text = await succeed(cluster, ['get', 'application', name, '--ignore-not-found', '-o', 'json']);
  return text === '' ? undefined : (JSON.parse(text) as Application);
}

/** Requests Argo CD to read the repository immediately instead of when its cache expires. */
export async function refresh(cluster: Access, name: string): Promise<void> {
  await succeed(cluster, ['annotate', 'application', name, '--overwrite', 'argocd.argoproj.io/refresh=hard']);
}

/**
 * Returns the health of the Application's objects, by `<kind>/<name>`. Objects without a health check are not included.
 */
export function healthOf({ status }: Application): Readonly<Record<string, string>> {
  return Object.fromEntries(
    (status?.resources ?? []).flatMap(({ kind, name, health }) =>
      health?.status === undefined ? [] : [[`${kind}/${name}`, health.status]],
    ),
  );
}

/** Returns the reasons why an Application is not Synced or not Healthy. */
export function explain(application: Application | undefined): string {
  const { sync, health, operationState, resources = [], conditions = [] } = application?.status ?? {};
  return [
    `${sync?.status} at ${sync?.revision}, ${health?.status}, ${operationState?.phase}: ${operationState?.message}`,
    ...conditions.map(({ type, message }) => `${type}: ${message}`),
    ...resources
      .filter(each => each.status !== 'Synced' || !['Healthy', undefined].includes(each.health?.status))
      .map(each => `${each.kind}/${each.name}: ${each.status}, ${each.health?.status} ${each.health?.message ?? ''}`),
  ].join('\n');
}

/**
 * Waits until an Application satisfies `isDone`. @throws after `withinMs`, including everything that is not Synced or
 * Healthy
 */
export async function untilApplication(
  cluster: Access,
  name: string,
  isDone: (application: Application) => boolean,
  withinMs = 300_000,
): Promise<Application> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const application = await readApplication(cluster, name);
    if (application !== undefined && isDone(application)) return application;
    if (performance.now() > untilMs) {
      throw new Error(`application ${name} after ${withinMs} ms: ${explain(application)}`);
    }
    await delay(500);
  }
}

/** Returns whether all objects of a revision have been applied and Argo CD has no work left. */
export function isSynced({ status }: Application, revision: string): boolean {
  return (
    status?.sync?.status === 'Synced' &&
    status.sync.revision === revision &&
    status.operationState?.phase === 'Succeeded' &&
    status.operationState.syncResult?.revision === revision
  );
}

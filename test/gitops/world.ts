import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { WORKSPACE_LABEL } from '../../src/api/well-known.ts';
import {
  type Application,
  applyApplication,
  isSynced,
  refresh,
  untilApplication,
} from '../support/argocd/application.ts';
import { type ArgoCd, startArgoCd } from '../support/argocd/argocd.ts';
import { createGitRepository, type GitRepository } from '../support/argocd/git-repository.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';
import { type Cluster, startCluster } from '../support/kubernetes/cluster.ts';
import { type RedisServer, startRedis } from '../support/redis/server.ts';
import { type Sluice, type SluiceOptions, startSluice } from '../support/sluice.ts';
import { createRestClient, type RestClient } from '../system/support/rest-client.ts';
import type { Manifest } from '../system/support/world.ts';

export const ROOT = join(import.meta.dirname, '..', '..');
/** Folder of the sample Application. */
export const SAMPLE = join(ROOT, 'config', 'argocd', 'sample');
/** Patch of argocd-cm with the health checks of the eight kinds. */
const HEALTH = join(ROOT, 'config', 'argocd', 'argocd-cm.yaml');

/** A cluster with the real Argo CD, a Git repository, and the processes of Sluice. */
export interface GitOpsWorld {
  readonly cluster: Cluster;
  readonly redis: RedisServer;
  readonly argocd: ArgoCd;
  readonly issuer: Issuer;
  readonly repository: GitRepository;
  /** Starts all roles in one process. There is no kubelet to start the Deployments. */
  readonly startSluice: (options?: Partial<SluiceOptions>) => Promise<Sluice>;
  /** Calls the facade on behalf of a person (`sub`). */
  readonly as: (sluice: Sluice, sub: string) => Promise<RestClient>;
  /** Applies the sample Application, but with another name, path, or namespace. */
  readonly follow: (name: string, change?: { readonly path: string; readonly namespace: string }) => Promise<void>;
  /** Commits objects as a single file and waits until the Application has applied them and is healthy. */
  readonly sync: (name: string, file: string, objects: readonly Manifest[], withinMs?: number) => Promise<Application>;
  readonly stop: () => Promise<void>;
}

/** Writes objects as a YAML file for the repository. */
export function yamlOf(objects: readonly Manifest[]): string {
  return objects.map(object => stringify(object)).join('---\n');
}

/** Reads the sample Application for a different repository. */
async function readSample(url: string): Promise<Application> {
  const application = parse(await readFile(join(SAMPLE, 'application.yaml'), 'utf8'));
  application.spec.source.repoURL = url;
  return application as Application;
}

/** Path of the sample's objects in the repository. */
export const SAMPLE_PATH = String(parse(readFileSync(join(SAMPLE, 'application.yaml'), 'utf8')).spec.source.path);

/** Returns the sample Application for different objects in another namespace. */
function moved(sample: Application, name: string, change: { path: string; namespace: string }): Application {
  const { metadata, spec } = structuredClone(sample) as unknown as {
    metadata: object;
    spec: { source: object; destination: object; syncPolicy: object };
  };
  return {
    ...sample,
    metadata: { ...metadata, name },
    spec: {
      ...spec,
      source: { ...spec.source, path: change.path },
      destination: { ...spec.destination, namespace: change.namespace },
      syncPolicy: {
        ...spec.syncPolicy,
        managedNamespaceMetadata: { labels: { [WORKSPACE_LABEL]: change.namespace } },
      },
    },
  };
}

export async function openGitOpsWorld(): Promise<GitOpsWorld> {
  const started: { stop: () => Promise<unknown> }[] = [];
  const keep = <T extends { stop: () => Promise<unknown> }>(each: T): T => {
    started.push(each);
    return each;
  };
  const stop = async () => {
    for (const each of started.toReversed()) await each.stop();
  };
  try {
    const cluster = keep(await startCluster({ controllerManager: true }));
    const redis = keep(await startRedis({ appendonly: true }));
    const issuer = await startIssuer();
    keep({ stop: issuer.close });
    const repository = await createGitRepository();
    keep({ stop: repository.remove });
    const argocd = keep(await startArgoCd(cluster, { settings: [HEALTH] }));
    const sample = await readSample(repository.url);
    return {
      cluster,
      redis,
      argocd,
      issuer,
      repository,
      startSluice: async ({ env, ...options } = {}) =>
        keep(
          await startSluice({
            kubeconfig: cluster.kubeconfig,
            redisUrl: redis.url,
            env: { ...issuer.env, SLUICE_NAMESPACE: 'sluice-system', ...env },
            ...options,
          }),
        ),
      as: async (sluice, sub) => createRestClient(sluice.facadeUrl, await issuer.token({ sub })),
      follow: (name, change) => applyApplication(cluster, change === undefined ? sample : moved(sample, name, change)),
      sync: async (name, file, objects, withinMs) => {
        const revision = await repository.commit({ [file]: yamlOf(objects) });
        await refresh(cluster, name);
        const isDone = (application: Application) =>
          isSynced(application, revision) && application.status?.health?.status === 'Healthy';
        return untilApplication(cluster, name, isDone, withinMs);
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

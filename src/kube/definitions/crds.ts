import { createHash } from 'node:crypto';
import { buildCrd } from '../../api/crd.ts';
import { GROUP, VERSION } from '../../api/group-version.ts';
import type { KindDefinition } from '../../api/kind.ts';
import { KINDS } from '../../api/kinds/kinds.ts';
import { SCHEMA_ANNOTATION } from '../../api/well-known.ts';
import type { Logger } from '../../telemetry/log.ts';
import type { Impairment } from '../../telemetry/role-health.ts';
import { type Clock, sleep } from '../../time/clock.ts';
import type { KubeClient } from '../client.ts';
import { isKubeError, NO_ANSWER } from '../kube-error.ts';
import type { AnyObject } from '../object.ts';
import type { Resource } from '../resource.ts';
import hashes from './schema-hashes.json' with { type: 'json' };

const CRDS: Resource = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

/** CustomResourceDefinition names for all kinds. */
export const CRD_NAMES: readonly string[] = Object.values(KINDS).map(({ plural }) => `${plural}.${GROUP}`);

/**
 * Returns the CustomResourceDefinition of a kind in the same format as in `crds/`, with the hash of the spec as an
 * annotation.
 */
export function describeCrd(kind: KindDefinition) {
  const { apiVersion, kind: kindOfCrd, metadata, spec } = buildCrd(kind);
  const hash = createHash('sha256').update(JSON.stringify(spec)).digest('hex').slice(0, 16);
  const annotations = { [SCHEMA_ANNOTATION]: hash };
  return { apiVersion, kind: kindOfCrd, metadata: { ...metadata, annotations }, spec };
}

/**
 * The hashes of all kinds, which are generated because building the schemas takes a new leader a tenth of the CPU time
 * until it leads.
 */
const HASHES: Readonly<Record<string, string>> = hashes;

/** The part of a schema that gets compared. */
interface SchemaNode {
  readonly enum?: readonly unknown[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
}

export type LiveCrd = AnyObject & {
  readonly spec: {
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly schema?: { readonly openAPIV3Schema?: SchemaNode };
    }[];
  };
};

/** Returns all fields and enum values that are included in `ours` but missing from `live`. */
function missingIn(live: SchemaNode | undefined, ours: SchemaNode, path: string): string[] {
  if (live === undefined) return [path];
  if (live['x-kubernetes-preserve-unknown-fields'] === true) return [];
  const { enum: known } = live;
  return [
    ...(known === undefined ? [] : (ours.enum ?? []).filter(value => !known.includes(value))).map(
      value => `${path}: ${String(value)}`,
    ),
    ...Object.entries(ours.properties ?? {}).flatMap(([name, node]) =>
      missingIn(live.properties?.[name], node, path === '' ? name : `${path}.${name}`),
    ),
    ...(ours.items === undefined ? [] : missingIn(live.items, ours.items, `${path}[]`)),
  ];
}

/**
 * Describes which fields are missing from a CustomResourceDefinition in the cluster. Returns undefined if there are
 * none. A newer version is always complete because it includes all fields of this version.
 */
export function lackOf(live: LiveCrd | undefined, kind: KindDefinition): string | undefined {
  if (live === undefined) return 'is missing';
  if (live.metadata.annotations?.[SCHEMA_ANNOTATION] === HASHES[kind.kind]) return undefined;
  const version = live.spec.versions.find(({ name, served }) => served && name === VERSION);
  if (version === undefined) return `does not serve the version ${VERSION}`;
  const schema = buildCrd(kind).spec.versions[0]?.schema.openAPIV3Schema as unknown as SchemaNode;
  const missing = missingIn(version.schema?.openAPIV3Schema, schema, '');
  if (missing.length === 0) return undefined;
  const rest = missing.length > 3 ? ` and ${missing.length - 3} more` : '';
  return `is older and does not contain ${missing.slice(0, 3).join(', ')}${rest}`;
}

const LOOK_EVERY_MS = 10_000;
const TRY_AGAIN_MS = 1_000;

/** CrdGate compares the CustomResourceDefinitions in the cluster with those we require. */
interface CrdGate {
  /**
   * Waits until all CustomResourceDefinitions exist and are up to date and then returns true. Returns false if `stop`
   * is aborted before.
   */
  readonly pass: (stop: AbortSignal) => Promise<boolean>;
  readonly impairments: () => readonly Impairment[];
}

export function createCrdGate(options: {
  readonly client: Pick<KubeClient, 'get' | 'server'>;
  readonly clock: Clock;
  readonly log: Logger;
}): CrdGate {
  const { client, clock, log } = options;
  let lacking: readonly string[] = [];
  let failure: unknown;

  async function look(signal: AbortSignal): Promise<void> {
    const problems = await Promise.all(
      Object.values(KINDS).map(async kind => {
        const name = `${kind.plural}.${GROUP}`;
        const lack = lackOf(await client.get<LiveCrd>(CRDS, { name }, { signal }), kind);
        return lack === undefined ? [] : [`${name} ${lack}`];
      }),
    );
    lacking = problems.flat();
    failure = undefined;
  }

  return {
    pass: async stop => {
      while (!stop.aborted) {
        let pauseMs = LOOK_EVERY_MS;
        try {
          await look(stop);
          if (lacking.length === 0) return true;
        } catch (error) {
          failure = isKubeError(error, 403) ? undefined : error;
          if (failure === undefined) {
            log.warn(
              { err: error as Error },
              'cannot compare the CustomResourceDefinitions: bind the ClusterRole sluice-controller',
            );
            return true;
          }
          log.debug({ err: error as Error }, 'failed to read the CustomResourceDefinitions, retrying');
          pauseMs = TRY_AGAIN_MS;
        }
        await sleep(clock, pauseMs, stop);
      }
      return false;
    },
    impairments: () => {
      if (failure !== undefined) return [unavailable(client.server, failure)];
      if (lacking.length === 0) return [];
      const message = `CustomResourceDefinition ${lacking.join('; ')}. To update it, run kubectl apply --server-side -f crds/ with the files of this version`;
      return [{ reason: 'OutdatedCRDs', cause: 'settings', message }];
    },
  };
}

function unavailable(server: string, failure: unknown): Impairment {
  const message = `The API server at ${server} does not respond or rejects the credentials: ${whyFailed(failure as Error)}. Check KUBECONFIG, and the token and certificates of this role`;
  return { reason: 'KubernetesUnavailable', cause: 'dependency', message };
}

/** Returns the message of an error, with that of the connection. */
function whyFailed(error: Error): string {
  // The message of an exec plugin may contain a secret.
  const isOfConnection = isKubeError(error, NO_ANSWER) && error.reason !== 'CredentialsFailed';
  return isOfConnection && error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}

import { PAUSED_ANNOTATION, signingSecretName } from '../../api/well-known.ts';
import { type AnyObject, keyOf } from '../../kube/object.ts';
import type { Reflector } from '../../kube/reflector.ts';
import { type KeySource, keysFrom } from '../engine/keyed-controller.ts';
import { type Cached, type Caches, pairKey, targetKey } from './caches.ts';

/** Maps changes of objects to the keys of the controllers that depend on them. */
export type Watches = ReturnType<typeof createWatches>;

const nameOf = (object: AnyObject | undefined): string[] => (object === undefined ? [] : [object.metadata.name]);
const homeOf = (object: AnyObject | undefined): string[] =>
  object === undefined ? [] : [object.metadata.namespace ?? ''];

/** Kinds with one controller key an object that belong to the workspace of their namespace. */
type KindOfWorkspace = 'CatalogStream' | 'Package' | 'Integration' | 'Block';

/** Returns whether the object was created or deleted, as opposed to edited. */
function isBirthOrDeath(old: unknown, current: unknown): boolean {
  return old === undefined || current === undefined;
}

function keyOfPair({ metadata, spec }: Cached<'Activation'>): string {
  return pairKey(metadata.namespace ?? '', spec.integration, spec.groupKey);
}

const pausedBy = (workspace: AnyObject | undefined) => workspace?.metadata.annotations?.[PAUSED_ANNOTATION];

/** Returns the fields that decide whether to send an invitation, without the result of the last try. */
function invitationStamp(integration: Cached<'Integration'> | undefined): string {
  if (integration === undefined) return '';
  const { metadata, spec, status } = integration;
  const { tokenHash, sentAt } = status?.invitation ?? {};
  const accepted = status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
  const { workspace, declined, revoked } = spec;
  return JSON.stringify([metadata.uid, tokenHash, sentAt, accepted, workspace, declined, revoked]);
}

export function createWatches(caches: Caches) {
  const inNamespace = (kind: KindOfWorkspace, namespace: string): string[] =>
    caches[kind].store.byIndex('namespace', namespace).map(({ metadata }) => keyOf(metadata));

  const keysBy = (kind: 'Package' | 'Block', index: string, entry: string): string[] =>
    caches[kind].store.byIndex(index, entry).map(({ metadata }) => keyOf(metadata));

  const workspacesOf = (account: string): string[] =>
    caches.Workspace.store.byIndex('account', account).map(({ metadata }) => metadata.name);

  /** Changes of a spec, or of the object's existence, which may change the routes. */
  const specOf = (reflector: Reflector<AnyObject>): KeySource =>
    keysFrom(reflector, (old, current) =>
      old?.metadata.generation === current?.metadata.generation &&
      old?.metadata.finalizers?.length === current?.metadata.finalizers?.length
        ? []
        : homeOf(current ?? old),
    );

  /** A namespace has the name of its workspace. One that lost its label does not belong to it any more. */
  const namespaces: KeySource = keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : [each.workspace])),
  );

  const ownedIntegrations: KeySource = keysFrom(caches.namespaces, (old, current) =>
    [old, current].flatMap(each => (each === undefined ? [] : inNamespace('Integration', each.workspace))),
  );

  return {
    /** Workspaces: of a changed account or namespace, and of a namespace where a stream was created or deleted. */
    workspace: [
      namespaces,
      keysFrom(caches.Account, (old, current) => nameOf(current ?? old).flatMap(workspacesOf)),
      keysFrom(caches.CatalogStream, (old, current) => (isBirthOrDeath(old, current) ? homeOf(current ?? old) : [])),
    ],
    /** Streams, packages, integrations and blocks: of a workspace that was created or deleted. */
    inWorkspace: (kind: KindOfWorkspace): KeySource =>
      keysFrom(caches.Workspace, (old, current) =>
        isBirthOrDeath(old, current) ? nameOf(current ?? old).flatMap(name => inNamespace(kind, name)) : [],
      ),
    /** Packages: with a stream that was created or deleted; of a Block that was created or deleted, or is being so. */
    package: [
      keysFrom(caches.CatalogStream, (old, current) =>
        isBirthOrDeath(old, current)
          ? keysBy('Package', 'stream', keyOf((current ?? (old as AnyObject)).metadata))
          : [],
      ),
      keysFrom(caches.Block, (old, current) => {
        const block = current ?? old;
        const same = old?.metadata.deletionTimestamp === current?.metadata.deletionTimestamp;
        if (block?.spec.target.kind !== 'Package' || (!isBirthOrDeath(old, current) && same)) return [];
        return [`${block.metadata.namespace}/${block.spec.target.name}`];
      }),
    ],
    /** Blocks: whose integration or target was created or deleted, or got the finalizer that protects it. */
    block: [
      keysFrom(caches.Integration, (old, current) =>
        isBirthOrDeath(old, current)
          ? keysBy('Block', 'integration', keyOf((current ?? (old as AnyObject)).metadata))
          : [],
      ),
      ...(['CatalogStream', 'Package'] as const).map(kind =>
        keysFrom(caches[kind] as Reflector<AnyObject>, (old, current) => {
          const { metadata } = current ?? (old as AnyObject);
          const same = old?.metadata.finalizers?.length === current?.metadata.finalizers?.length;
          if (!isBirthOrDeath(old, current) && same) return [];
          return keysBy('Block', 'target', targetKey(metadata.namespace ?? '', kind, metadata.name));
        }),
      ),
    ],
    /** Subscriptions: whose mirrored Secret was changed or deleted, or whose name for it became free. */
    subscription: [
      keysFrom(caches.headerSecrets, (old, current) => {
        if (old === undefined || current !== undefined) return [];
        const key = old.key.replace(/-signing$/, '');
        const name = caches.Subscription.store.get(key)?.metadata.name;
        return name !== undefined && old.key.endsWith(`/${signingSecretName(name)}`) ? [key] : [];
      }),
      keysFrom(caches.signingSecrets, (old, current) => {
        const { namespace, owner } = current ?? old ?? {};
        return owner === undefined ? [] : [`${namespace}/${owner}`];
      }),
    ],
    /** Integrations: of a namespace whose owner changed; whose granted workspace starts or stops to use them. */
    integration: [
      ownedIntegrations,
      keysFrom(caches.Subscription, (old, current) => {
        const subscription = current ?? old;
        if (subscription === undefined || !isBirthOrDeath(old, current)) return [];
        const { metadata, spec } = subscription;
        const key = `${spec.producer}/${spec.integration}`;
        return caches.Integration.store.get(key)?.spec.workspace === metadata.namespace ? [key] : [];
      }),
    ],
    /**
     * Invitations, by key of their integration: those that may have to be sent, whose Secret was changed or deleted, or
     * whose workspace was paused or resumed. Not those that failed again: they wait for their backoff.
     */
    invitation: [
      keysFrom(caches.Integration, (old, current) =>
        invitationStamp(old) === invitationStamp(current) ? [] : [keyOf((current ?? (old as AnyObject)).metadata)],
      ),
      keysFrom(caches.invitationSecrets, (old, current) => {
        const { namespace, owner } = current ?? old ?? {};
        return owner === undefined ? [] : [`${namespace}/${owner}`];
      }),
      keysFrom(caches.Workspace, (old, current) =>
        isBirthOrDeath(old, current) || pausedBy(old) !== pausedBy(current)
          ? nameOf(current ?? old).flatMap(name => inNamespace('Integration', name))
          : [],
      ),
      ownedIntegrations,
    ],
    /** Pairs: of a changed activation, except for the controller's own echo; of an integration that changed state. */
    pair: (isEcho: (old: AnyObject | undefined, current: AnyObject) => boolean): KeySource[] => [
      keysFrom(caches.Activation, (old, current) => {
        if (current !== undefined && isEcho(old, current)) return [];
        return [old, current].flatMap(each => (each === undefined ? [] : [keyOfPair(each)]));
      }),
      keysFrom(caches.Integration, (old, current) => {
        const accepted = (each: Cached<'Integration'> | undefined) =>
          each?.status?.conditions?.find(({ type }) => type === 'Accepted')?.reason;
        const object = current ?? old;
        if (object === undefined || (!isBirthOrDeath(old, current) && accepted(old) === accepted(current))) return [];
        return caches.Activation.store.byIndex('integration', keyOf(object.metadata)).map(keyOfPair);
      }),
      keysFrom(caches.Workspace, (old, current) =>
        isBirthOrDeath(old, current)
          ? nameOf(current ?? old).flatMap(name => caches.Activation.store.byIndex('namespace', name).map(keyOfPair))
          : [],
      ),
    ],
    /** Tenants: all objects that their routes depend on. */
    routes: [
      namespaces,
      keysFrom(caches.Workspace, (old, current) => nameOf(current ?? old)),
      keysFrom(caches.Account, (old, current) =>
        old?.spec.plan === current?.spec.plan ? [] : nameOf(current ?? old).flatMap(workspacesOf),
      ),
      ...[caches.CatalogStream, caches.Package, caches.Integration, caches.Block].map(kind =>
        specOf(kind as Reflector<AnyObject>),
      ),
      keysFrom(caches.Subscription, (old, current) =>
        old?.metadata.generation === current?.metadata.generation &&
        old?.metadata.finalizers?.length === current?.metadata.finalizers?.length &&
        old?.status?.signing?.rotatedAt === current?.status?.signing?.rotatedAt &&
        old?.status?.endpoint?.disabledAt === current?.status?.endpoint?.disabledAt
          ? []
          : [(current ?? old)?.spec.producer ?? ''],
      ),
      keysFrom(caches.ingressKeys, (old, current) =>
        [old, current].flatMap(each => (each === undefined ? [] : [each.namespace])),
      ),
      // Secrets that no header names have no effect.
      keysFrom(caches.headerSecrets, (old, current) =>
        caches.Subscription.store.byIndex('secret', (current ?? old)?.key ?? '').map(({ spec }) => spec.producer),
      ),
    ],
    inNamespace,
    /** Returns the workspaces that an account pays for. */
    workspacesOf,
    /** Returns the pairs of a namespace with an activation whose current generation is not applied yet. */
    unsettledPairs: (namespace: string): string[] =>
      caches.Activation.store.byIndex('namespace', namespace).flatMap(activation => {
        const ready = activation.status?.conditions?.find(({ type }) => type === 'Ready');
        const settled = ready?.status === 'True' && ready.observedGeneration === activation.metadata.generation;
        return settled ? [] : [keyOfPair(activation)];
      }),
  };
}

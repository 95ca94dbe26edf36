import { describe, expect, test } from 'vitest';
import { finish } from '../../core/routing/steps.ts';
import { createLogger } from '../../telemetry/log.ts';
import type { KubeClient } from '../client.ts';
import { isStale } from '../kube-error.ts';
import { type AnyObject, keyOf } from '../object.ts';
import { createReflected } from '../reflected.ts';
import type { Reflector } from '../reflector.ts';
import { createResponsibility } from './responsibility.ts';

const log = createLogger({ level: 'silent' });

type Assigned = AnyObject & { readonly spec: { readonly instance?: string } };

/** A reflector that receives events from the test. */
function createSource<P>(project: (object: AnyObject) => P) {
  const reflected = createReflected<P>({
    project,
    indexers: { namespace: value => [(value as AnyObject).metadata?.namespace ?? ''] },
    log,
  });
  const replace = (...list: Parameters<typeof reflected.replace>) => finish(reflected.replace(...list));
  return { reflector: reflected as unknown as Reflector<P>, apply: reflected.apply, replace };
}

/** An installation that watches all Workspaces, the namespace labels, and one kind of objects. */
function install(instance: string) {
  let version = 0;
  const asked: string[] = [];
  /** Objects that only the API server knows so far. */
  const unseen = new Map<string, Assigned>();
  const workspaces = createSource(object => object as Assigned);
  const namespaces = createSource(({ metadata }) => ({ instance: metadata.labels?.instance ?? '' }));
  const things = createSource(object => object);
  const get = async (_resource: object, { name }: { name: string }) => {
    asked.push(name);
    return unseen.get(name);
  };
  const responsibility = createResponsibility<Assigned>({
    instance,
    workspaces: workspaces.reflector,
    namespaces: namespaces.reflector,
    client: { get: get as KubeClient['get'] },
    log,
  });
  const view = responsibility.namespaced(things.reflector, ({ metadata }) => metadata.namespace ?? '');
  const own = responsibility.assigned(workspaces.reflector);
  const heard: string[] = [];
  view.subscribe((change, key) => heard.push(`${change} ${key}`));
  own.subscribe((change, key) => heard.push(`${change} workspace ${key}`));

  const metadata = (name: string, more: object = {}) => {
    version++;
    return { name, uid: `${name}-${version}`, resourceVersion: `${version}`, ...more };
  };
  const workspace = (name: string, of: string): Assigned => ({
    metadata: metadata(name),
    spec: of === '' ? {} : { instance: of },
  });
  return {
    responsibility,
    view,
    own,
    asked,
    unseen,
    workspace,
    things,
    addWorkspace: (name: string, of: string) =>
      workspaces.apply({ type: 'ADDED', object: workspace(name, of) } as never),
    removeWorkspace: (name: string) => workspaces.apply({ type: 'DELETED', object: workspace(name, '') } as never),
    relistWorkspaces: (...objects: Assigned[]) =>
      workspaces.replace(
        objects.map(value => ({
          key: keyOf(value.metadata),
          uid: value.metadata.uid,
          resourceVersion: value.metadata.resourceVersion,
          value,
        })),
        `${++version}`,
      ),
    label: (name: string, of: string) =>
      namespaces.apply({ type: 'ADDED', object: { metadata: metadata(name, { labels: { instance: of } }) } } as never),
    addThing: (namespace: string, name: string) =>
      things.apply({ type: 'ADDED', object: { metadata: metadata(name, { namespace }) } } as never),
    removeThing: (namespace: string, name: string) =>
      things.apply({ type: 'DELETED', object: { metadata: metadata(name, { namespace }) } } as never),
    /** Returns everything that has happened since the last call. */
    news: () => heard.splice(0),
    seen: () => [...view.store.keys()],
  };
}

describe('an installation', () => {
  test.each([
    ['', ['default/a', 'nobody/a']],
    ['blue', ['blue/a']],
    ['green', []],
  ])('named "%s" can see objects in the namespaces of its own Workspaces', (instance, expected) => {
    const world = install(instance);
    world.addWorkspace('default', '');
    world.addWorkspace('blue', 'blue');
    for (const namespace of ['default', 'blue', 'nobody']) world.addThing(namespace, 'a');
    const { store } = world.view;
    expect(world.seen()).toEqual(expected);
    expect([...store.values()].map(({ metadata }) => keyOf(metadata))).toEqual(expected);
    expect(store.size()).toBe(expected.length);
    expect([...store.countsByIndex('namespace')]).toEqual(expected.map(key => [key.split('/')[0], 1]));
    for (const namespace of ['default', 'blue', 'nobody']) {
      const visible = expected.includes(`${namespace}/a`);
      expect(store.get(`${namespace}/a`) !== undefined).toBe(visible);
      expect(store.byIndex('namespace', namespace)).toHaveLength(visible ? 1 : 0);
      expect(store.keysByIndex('namespace', namespace)).toHaveLength(visible ? 1 : 0);
    }
    expect([...world.own.store.keys()]).toEqual(['default', 'blue'].filter(name => expected.includes(`${name}/a`)));
  });

  test('is not notified when foreign objects are created or deleted', () => {
    const world = install('');
    world.addWorkspace('shop', 'blue');
    world.addThing('shop', 'a');
    world.removeThing('shop', 'a');
    expect(world.news()).toEqual([]);
    world.addThing('other', 'a');
    world.removeThing('other', 'a');
    expect(world.news()).toEqual(['added other/a', 'deleted other/a']);
  });

  test('is notified of existing objects when its Workspace appears, and when it is removed', () => {
    const world = install('blue');
    world.addThing('shop', 'a');
    world.addThing('shop', 'b');
    world.addThing('other', 'a');
    expect(world.news()).toEqual([]);
    world.addWorkspace('shop', 'blue');
    expect(world.news().toSorted()).toEqual(['added shop/a', 'added shop/b', 'added workspace shop']);
    world.removeWorkspace('shop');
    expect(world.news().toSorted()).toEqual(['deleted shop/a', 'deleted shop/b', 'deleted workspace shop']);
  });

  test('without a name is responsible for namespaces without a Workspace or a label', () => {
    const world = install('');
    world.addWorkspace('shop', 'blue');
    world.addWorkspace('mall', 'blue');
    world.label('mall', 'blue');
    world.addThing('shop', 'a');
    world.addThing('mall', 'a');
    world.removeWorkspace('shop');
    world.removeWorkspace('mall');
    expect(world.news()).toEqual(['added shop/a']);
    world.label('mall', '');
    expect(world.news()).toEqual(['added mall/a']);
  });

  test('is responsible for a namespace with its label', () => {
    const world = install('blue');
    world.label('shop', 'blue');
    world.addThing('shop', 'a');
    expect(world.news()).toEqual(['added shop/a']);
    world.addWorkspace('shop', 'blue');
    world.removeWorkspace('shop');
    expect(world.news()).toEqual(['added workspace shop', 'deleted workspace shop']);
    expect(world.seen()).toEqual(['shop/a']);
  });

  test('detects in a list that a Workspace was recreated for another installation', () => {
    const world = install('');
    world.relistWorkspaces(world.workspace('shop', ''));
    world.addThing('shop', 'a');
    world.news();
    world.relistWorkspaces(world.workspace('shop', 'blue'));
    expect(world.news().toSorted()).toEqual(['deleted shop/a', 'deleted workspace shop']);
    expect(world.seen()).toEqual([]);
  });
});

describe('before an object is reconciled', () => {
  test('a Workspace that the watch has not delivered yet is not treated as missing', async () => {
    const world = install('');
    world.unseen.set('shop', world.workspace('shop', 'blue'));
    const failure = await world.responsibility.confirm('shop/a').then(
      () => undefined,
      (error: unknown) => error,
    );
    expect(isStale(failure)).toBe(true);
    world.addWorkspace('shop', 'blue');
    await world.responsibility.confirm('shop/a');
    expect(world.asked).toEqual(['shop']);
  });

  test('returns undefined for a missing Workspace, and uses the cache otherwise', async () => {
    const world = install('');
    await world.responsibility.confirm('shop/a');
    world.addWorkspace('mall', '');
    await world.responsibility.confirm('mall/a');
    await world.responsibility.confirm('an-account');
    expect(world.asked).toEqual(['shop']);
  });
});

test('a namespace is checked using the API server while its Workspace is not cached', async () => {
  const world = install('blue');
  world.unseen.set('shop', world.workspace('shop', 'blue'));
  world.unseen.set('mall', world.workspace('mall', ''));
  const responsible = (name: string) => world.responsibility.isResponsibleFor(name);
  expect(await Promise.all(['shop', 'mall', 'nowhere'].map(responsible))).toEqual([true, false, false]);
  world.addWorkspace('mall', 'blue');
  expect(await responsible('mall')).toBe(true);
});
